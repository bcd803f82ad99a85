"""A clip that was interrupted goes on where it was, and comes out the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from function.exits import Exit
from function.problems import Problem
from function.video.parts import Folder
from tests.function.video.conftest import COLLINS
from tests.function.video.films import PHOTOS, film, frames_of, scene, sound_of, times_of

EMBER_SWAP = [str(Path(sys.executable).with_name("ember")), "swap"]
EMBER_SWAP += [str(PHOTOS / "grace_hopper.jpg")]
FRAMES = 28
"""At two frames a second: four parts of about four seconds each."""


class Recording:
    """Keeps parts, and breaks when it is given its last one."""

    def __init__(self, most=99):
        self.kept, self.asked, self._most = {}, [], most

    async def get(self, name):
        self.asked.append(name)
        return self.kept.get(name)

    async def put(self, name, data):
        if len(self.kept) == self._most:
            raise OSError("no space left")
        self.kept[name] = data


@pytest.fixture(scope="module")
def long(folder):
    times = [Fraction(k, 2) for k in range(FRAMES)]
    frames = list(scene(FRAMES, (192, 108)))
    return film(folder / "long.mp4", frames, times=times, sound="aac", options={"g": "1000"})


@pytest.fixture(scope="module")
def whole(long, folder, swap):
    """It, swapped in one go."""
    out, parts = folder / "whole.mp4", Recording()
    swap(long, out, parts=parts)
    return out, parts


def test_a_clip_is_made_in_parts(whole, long):
    out, parts = whole
    assert len(parts.kept) == 4
    assert times_of(out) == times_of(long)
    assert sound_of(out) == sound_of(long)


def test_what_is_kept_is_not_computed_again_and_the_rest_is_the_same(whole, long, folder, swap):
    out, before = folder / "again.mp4", whole[1].kept
    broken = Recording(most=2)
    with pytest.raises(OSError, match="no space"):
        swap(long, out, parts=broken)
    assert not out.exists()
    done = Recording()
    done.kept = dict(broken.kept)
    swap(long, out, parts=done)
    assert swap.told[:3] == [(8, FRAMES), (16, FRAMES), (17, FRAMES)]  # two parts were kept
    assert done.kept.keys() == before.keys()
    assert {name: done.kept[name] for name in broken.kept} == broken.kept
    assert alike(out, whole[0])


def alike(out, other):
    """Whether two videos show the same at the same times; encoders are not quite repeatable."""
    pairs = zip(frames_of(out), frames_of(other), strict=True)
    worst = max(np.abs(a.astype(int) - b).mean() for a, b in pairs)
    return worst < 0.5 and times_of(out) == times_of(other) and sound_of(out) == sound_of(other)


def test_parts_of_another_order_are_not_taken(whole, long, folder, swap):
    parts = Recording()
    parts.kept = dict(whole[1].kept)
    swap(long, folder / "other.mp4", source=COLLINS, parts=parts)
    assert len(parts.kept) == 8


def test_parts_in_a_folder_are_there_whole_or_not_at_all(tmp_path, swap):
    parts = Folder(tmp_path / "parts")
    assert swap.run(parts.get("a")) is None
    swap.run(parts.put("a", b"1" * 99))
    assert swap.run(parts.get("a")) == b"1" * 99
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["a"]
    parts.clear()
    assert not (tmp_path / "parts").exists()


def test_after_kill_9_the_command_goes_on(whole, long, tmp_path):
    out = tmp_path / "out.mp4"
    parts = out.with_name(".out.mp4.parts")
    command = [*EMBER_SWAP, str(long), "-o", str(out)]
    first = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 60
        while not len(_parts(parts)) and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate()
    kept = {path: path.stat().st_mtime_ns for path in _parts(parts)}
    assert 0 < len(kept) < 4
    assert not out.exists()
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert f"{FRAMES} of {FRAMES} frames swapped" in done.stderr
    assert not parts.exists()
    assert alike(out, whole[0])


def test_parts_of_a_clip_that_cannot_be_swapped_are_not_left(tmp_path):
    target = film(tmp_path / "two.mp4", list(scene(2)), sound=None)
    out = tmp_path / "out.mp4"
    command = [*EMBER_SWAP, str(target), "-o", str(out), "--faces", "index:7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "There is no face 7" in done.stderr
    assert not out.exists()
    assert not out.with_name(".out.mp4.parts").exists()


def _parts(folder):
    return [path for path in folder.glob("*") if "." not in path.name] if folder.exists() else []


def test_a_problem_of_the_target_is_raised_before_any_part(tmp_path, swap):
    parts = Recording()
    (tmp_path / "no.mp4").write_bytes(b"\0\0\0\x18ftypisom" + bytes(200))
    with pytest.raises(Problem) as raised:
        swap(tmp_path / "no.mp4", tmp_path / "out.mp4", parts=parts)
    assert raised.value.code == "bad_clip"
    assert not parts.asked


def test_without_the_extra_a_video_is_refused_with_what_to_install(tmp_path, plain):
    """`av` cannot be imported in this process, as where the extra is missing."""
    program = "import sys; sys.modules['av'] = None; from function.command import main; main()"
    command = [sys.executable, "-c", program, *EMBER_SWAP[1:], str(plain), "-o"]
    done = subprocess.run(
        [*command, str(tmp_path / "out.mp4")], capture_output=True, text=True, check=False
    )
    assert done.returncode == Exit.BAD_INPUT, done.stderr
    assert "make install EXTRAS=video" in done.stderr
    assert "Traceback" not in done.stderr
