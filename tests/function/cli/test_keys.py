"""`ember keys` and `ember price`."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest
from PIL import Image

from function.admission import keys
from function.admission.policy import BUILT_IN


def ember(*words, code=0, **environ):
    done = subprocess.run(
        [sys.executable, "-m", "function", *map(str, words)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if not code else done.stderr


@pytest.fixture
def image(tmp_path):
    """Make a photo of a size, in a format, and give its path."""

    def make(width, height, suffix="jpg", **options):
        path = tmp_path / f"{width}x{height}.{suffix}"
        Image.new("RGB", (width, height)).save(path, **options)
        return path

    return make


async def test_a_new_key_works_with_its_line(tmp_path):
    key, line = ember("keys", "new", "ann", "--tier", "paid", "--lane", "bulk").splitlines()
    path = tmp_path / "keys"
    path.write_text(line)
    caller = await keys.ApiKeys(path).caller(key)
    assert (caller.subject, caller.tier, caller.lane) == ("ann", "paid", "bulk")


async def test_a_line_is_added_to_a_file_that_others_cannot_read(tmp_path):
    path = tmp_path / "keys"
    made = [ember("keys", "new", name, "--file", path).strip() for name in ("ann", "bob")]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [(await keys.ApiKeys(path).caller(key)).subject for key in made] == ["ann", "bob"]
    assert not any(key in path.read_text() for key in made)


@pytest.mark.parametrize("words", [["two words"], ["a#b"], [""], ["ann", "--tier", "a b"], []])
def test_a_subject_or_a_tier_that_a_line_cannot_have_is_refused(words):
    assert "Usage" in ember("keys", "new", *words, code=2)


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    told = ember("keys", "new", "ann", "--file", tmp_path / "nowhere" / "keys", code=74)
    assert "nowhere/keys cannot be written" in told


def test_the_price_of_a_photo_follows_from_its_size(image):
    paths = [image(640, 480), image(1280, 720, "png"), image(1920, 1080, "webp")]
    lines = ember("price", *paths).splitlines()
    assert [int(line.split()[0]) for line in lines] == [1, 3, 5, 1 + 3 + 4]
    assert "480p" in lines[0]
    assert "batch" in lines[-1]


@pytest.mark.parametrize(
    ("suffix", "options"),
    [
        ("jpg", {}),
        ("png", {}),
        ("gif", {}),
        ("bmp", {}),
        ("tiff", {}),
        ("avif", {}),
        ("webp", {}),
        ("webp", {"lossless": True}),
        ("webp", {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0"}),
    ],
)
def test_the_size_is_read_from_every_format(image, suffix, options):
    from function.images.size import pixels

    assert pixels(image(1283, 717, suffix, **options).read_bytes()) == 1283 * 717


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7", b"\xff\xd8\xff", b"RIFF\0\0\0\0WEBPVP8 "])
def test_a_size_that_cannot_be_read_is_none(data):
    from function.images.size import pixels

    assert not pixels(data)


def test_prices_are_written_as_json_and_follow_the_policy(image, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text(BUILT_IN.read_text().replace("source = 1 ", "source = 2 "))
    path = image(640, 480)
    told = ember("price", path, "--sources", 3, "--json", EMBER_POLICY=str(policy))
    assert json.loads(told) == {
        "images": [{"image": str(path), "pixels": 640 * 480, "tokens": 5, "batch": 5}],
        "batch": 5,
    }


def test_what_is_no_photo_has_no_price(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("no photo")
    assert "no photo" in ember("price", path, code=65)
