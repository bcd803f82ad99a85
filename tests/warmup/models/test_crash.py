"""Killed at any moment, the store is complete or can go on, and never wrong."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.warmup.conftest import content_of, file_of

CONTENTS = {"small": content_of(3_000, 1), "middle": content_of(150_000, 2)} | {
    "large": content_of(600_000, 3)
}


def crash(tmp_path, uris, **facts):
    entries = []
    for name, content in CONTENTS.items():
        file = file_of(content, uris(name, content))
        entries.append(
            f'[[model]]\nrole = "{name}"\nfamily = "f"\nuri = "{file.uri}"\nsize = {file.size}\n'
            f'sha256 = "{file.sha256}"\nlicence = "MIT"\n'
        )
    manifest = tmp_path / "models.toml"
    manifest.write_text("".join(entries))
    facts |= {"manifest": str(manifest), "store": str(tmp_path / "store")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.warmup.models.crash", json.dumps({"connections": 4} | facts)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.slow
def test_two_processes_killed_at_200_random_moments(site, tmp_path):
    def slow(content):
        return lambda request: request.answer(content, chunk=4_000, pause=0.004)

    found, said = crash(
        tmp_path,
        lambda _, content: site.put(content, slow(content)),
        mode="random",
        kills=200,
        longest_s=0.3,
        seed=7,
    )
    assert found["killed"] >= 200
    assert found["rounds"] > 3
    assert "Traceback" not in said
    # What had come before a kill was not lost: most of it was sent once for each round.
    assert site.sent < 2 * found["rounds"] * sum(map(len, CONTENTS.values()))


def test_a_process_killed_before_each_of_its_steps(tmp_path):
    def local(name, content):
        (tmp_path / name).write_bytes(content)
        return (tmp_path / name).as_uri()

    found, said = crash(tmp_path, local, mode="every")
    assert found["steps"] > 30
    assert "Traceback" not in said
