"""What `ember swap` takes for a clip, and what it says where that cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from function.cli.clip import becomes
from function.images.kinds import FileKind
from tests.function.video.films import PHOTOS, animation, scene


@pytest.fixture(scope="module")
def gif(folder):
    return animation(folder / "cli.gif", scene(3), duration=[40, 70, 90])


@pytest.mark.parametrize(
    ("target", "out", "kind"),
    [
        ("plain.mp4", "o.mp4", FileKind.MP4),
        ("plain.mp4", "o.MOV", FileKind.MOV),
        ("plain.mp4", ".", FileKind.MP4),
        ("cli.gif", "o.gif", FileKind.GIF),
        ("cli.gif", "o.webp", FileKind.WEBP),
        ("cli.gif", "o.png", None),
        ("cli.gif", None, None),
    ],
)
def test_the_name_of_the_output_says_what_becomes_of_a_clip(target, out, kind, folder, plain, gif):
    path = folder / out if out else None
    assert becomes(folder / target, path, None) is kind


def test_photos_folders_and_standard_input_are_no_clips(folder):
    for target in (PHOTOS / "astronaut.png", PHOTOS, Path("-"), folder / "nothing.mp4"):
        assert becomes(target, folder / "out.mp4", None) is None


@pytest.mark.parametrize(
    ("out", "format_", "said"),
    [
        (None, None, "-o OUT"),
        ("-", None, "-o OUT"),
        ("o.png", None, ".mp4"),
        ("o.gif", None, ".mp4"),
        ("o", None, ".mp4"),
        ("o.mp4", "png", "--format"),
    ],
)
def test_a_kind_that_a_video_cannot_become_is_refused_by_name(out, format_, said, folder, plain):
    path = Path("-") if out == "-" else folder / out if out else None
    with pytest.raises(click.UsageError, match=said):
        becomes(plain, path, format_)


def test_a_clip_of_the_command_line_is_reported_as_json(gif, tmp_path):
    ember, source = Path(sys.executable).with_name("ember"), PHOTOS / "grace_hopper.jpg"
    out = tmp_path / "out.gif"
    command = [str(ember), "swap", str(source), str(gif), "-o", str(out), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert (told["frames"], told["swapped"], told["seconds"]) == (3, 3, 0.2)
    assert told["media_type"] == "image/gif"
    assert [path.name for path in tmp_path.iterdir()] == ["out.gif"]
