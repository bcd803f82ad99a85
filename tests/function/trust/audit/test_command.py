"""`ember audit`: check, find, and make keys."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from function.cli.audit import audit
from function.cli.failure import Failure
from function.trust.audit import keyring
from function.trust.audit.sinks.folder import FolderSink
from function.trust.audit.sinks.spool import Spool, SpoolLimits
from tests.function.live import SOURCE, TARGET, Live
from tests.warmup.objects.gcs import fake_gcs

from .chains import auditing, swap
from .test_bucket import uploads

PHOTO, RESULT, FACE = b"a photo", b"a result", b"a face"
PAYLOAD = "0123456789ab"


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"{keyring.new()}\n{keyring.new()}\n")
    return path


@pytest.fixture
def folder(tmp_path, keys):
    """A folder with a chain of each key; the second has one swap of these photos."""
    new, old = keyring.read(keys)
    made = tmp_path / "audit"

    async def write():
        async with auditing(FolderSink(made, fsync=False), old) as one:
            await one.write(swap("old", target=one.digest(PHOTO)))
        async with auditing(FolderSink(made, fsync=False), new) as two:
            for name in ("before", "wanted", "after"):
                facts = {
                    "sources": (two.digest(FACE),),
                    "target": two.digest(PHOTO),
                    "output": two.digest(RESULT),
                    "watermark": PAYLOAD,
                }
                await two.write(swap(name, **(facts if name == "wanted" else {})))

    asyncio.run(write())
    return made


def call(*words, **environ):
    """What the command answers: its code and its output."""
    done = CliRunner().invoke(
        audit, [str(word) for word in words], env=environ, standalone_mode=False
    )
    if done.exception:
        raise done.exception
    return done.return_value, done.stdout


def test_a_whole_audit_and_a_broken_one(folder, keys):
    code, told = call("verify", folder, "--key", keys)
    assert (code, told) == (0, "2 chains, 8 lines: whole\n")
    path = max(folder.glob("*.jsonl"), key=lambda each: each.stat().st_size)
    path.write_bytes(path.read_bytes().replace(b'"before"', b'"refore"'))
    code, told = call("verify", folder, "--key", keys)
    assert (code, told) == (
        1, f"FAULT  {path}:2: was changed: its code is wrong\n2 chains, 8 lines: 1 fault\n"
    )  # fmt: skip


def test_place_and_keys_are_those_of_the_settings(folder, keys):
    settings = {"EMBER_AUDIT": folder.as_uri(), "EMBER_AUDIT_KEY": str(keys)}
    assert call("verify", **settings)[0] == 0
    _, told = call("verify", "--json", **settings)
    assert json.loads(told) == {"chains": 2, "lines": 8, "faults": [], "notes": []}


def test_as_a_program_it_reads_what_is_piped_to_it(folder, keys):
    text = b"starting\n" + b"".join(path.read_bytes() for path in folder.glob("*.jsonl"))
    command = [sys.executable, "-m", "function", "audit", "verify", "-", "--key", str(keys)]
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"2 chains, 8 lines: whole\n")
    done = subprocess.run(command, input=b"starting\n", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"0 chains, 0 lines: no audit\n")


@pytest.mark.parametrize(
    ("data", "by", "requests"),
    [
        (RESULT, "output", ["wanted"]),
        (FACE, "source", ["wanted"]),
        (PHOTO, "target", ["old", "wanted"]),
    ],
)
def test_a_file_leads_to_its_requests(folder, keys, tmp_path, data, by, requests):
    picture = tmp_path / "picture.jpg"
    picture.write_bytes(data)
    code, told = call("find", picture, folder, "--exact", "--key", keys, "--json")
    found = [json.loads(line) for line in told.splitlines()]
    assert code == 0
    assert sorted(each["line"]["request"] for each in found) == requests
    assert {(each["by"], each["sound"]) for each in found} == {(by, True)}


def test_a_copy_that_was_changed_is_found_by_its_watermark(folder, keys, tmp_path):
    picture = tmp_path / "picture.jpg"
    picture.write_bytes(b"a screenshot")
    words = ("find", picture, folder, "--exact", "--key", keys)
    code, told = call(*words)
    assert (code, told) == (1, "")
    code, told = call(*words, "--payload", PAYLOAD.upper())
    assert code == 0
    assert "by its watermark:  kind swap  request wanted  entry http" in told
    code, told = call(*words, "--request", "before")
    assert code == 0
    assert "by its request:  kind swap  request before" in told


def test_a_screenshot_leads_to_the_swap_that_it_shows(tmp_path, keys):
    """Written by a real server; then scaled, compressed anew, and without its metadata."""
    folder = tmp_path / "audit"
    with Live(audit=folder.as_uri(), audit_key=keys) as server:
        answers = [server.form("/v1/swap", SOURCE, TARGET) for _ in range(2)]
    picture = tmp_path / "screenshot.jpg"
    image = answers[1].image
    smaller = image.resize((image.width * 9 // 10, image.height * 9 // 10))
    smaller.convert("RGB").save(picture, quality=80)
    code, told = call("find", picture, folder, "--key", keys, "--json")
    (found,) = map(json.loads, told.splitlines())
    assert code == 0
    assert (found["by"], found["sound"]) == ("watermark", True)
    assert found["line"]["request"] == answers[1].headers["Ember-Request-Id"]
    picture.write_bytes(answers[0].body)
    (found,) = map(
        json.loads, call("find", picture, folder, "--key", keys, "--json")[1].splitlines()
    )
    assert found["by"] == "output"
    assert found["line"]["request"] == answers[0].headers["Ember-Request-Id"]


def test_what_is_no_picture_is_still_found_by_its_bytes(folder, keys, tmp_path):
    picture = tmp_path / "picture.jpg"
    picture.write_bytes(RESULT)
    code, told = call("find", picture, folder, "--key", keys)
    assert (code, told.count("by its output")) == (0, 1)


def test_a_line_that_was_changed_is_found_and_said_to_be(folder, keys, tmp_path):
    path = max(folder.glob("*.jsonl"), key=lambda each: each.stat().st_size)
    log = tmp_path / "server.log"
    log.write_bytes(path.read_bytes().replace(b'"wanted"', b'"Wanted"'))
    picture = tmp_path / "picture.jpg"
    picture.write_bytes(RESULT)
    assert "CHANGED" in call("find", picture, log, "--exact", "--key", keys)[1]


def test_what_is_no_place_is_said(tmp_path, keys):
    with pytest.raises(Failure, match="nothing at"):
        call("verify", tmp_path / "none", "--key", keys)
    (tmp_path / "bad").write_text("x")
    with pytest.raises(Failure, match="line 1 is not 64"):
        call("verify", tmp_path, "--key", tmp_path / "bad")
    with pytest.raises(Exception, match="Name a PLACE"):
        call("verify")
    with pytest.raises(Exception, match="12 hexadecimal digits"):
        call("find", keys, tmp_path, "--payload", "xyz")


def test_a_key_is_made(tmp_path):
    path = tmp_path / "keys"
    path.write_text(call("key")[1])
    (made,) = keyring.read(path)
    assert len(made.id) == 8


def test_a_bucket_is_checked(tmp_path, keys):
    key = keyring.read(keys)[0]

    async def write():
        spool = Spool(tmp_path / "spool", SpoolLimits(60.0, 10**6, fsync=False))
        async with auditing(spool, key, uploads(spool, "gs://audit/ember/")) as made:
            await made.write(swap("a", output=made.digest(RESULT)))

    with fake_gcs("audit"):
        asyncio.run(write())
        assert call("verify", "gs://audit/ember", "--key", keys) == (
            0, "1 chain, 3 lines: whole\n"
        )  # fmt: skip
        assert call("verify", "gs://audit/ember", "--key", keys, "--since", "2020-01-01")[0] == 0
        picture = tmp_path / "picture.jpg"
        picture.write_bytes(RESULT)
        assert call("find", picture, "gs://audit/ember", "--exact", "--key", keys)[0] == 0
        with pytest.raises(Failure, match="cannot be read"):
            call("verify", "gs://no-such-bucket/x", "--key", keys)


def test_a_bucket_without_the_extra_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['google'] = None; sys.modules['google.cloud'] = None\n"
        "sys.argv = ['ember', 'audit', 'verify', 'gs://bucket/x']\n"
        "from function.command import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 78, done.stderr
    assert "EXTRAS=gcs" in done.stderr
