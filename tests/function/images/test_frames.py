"""Frames are counted as the decoder goes over them, and the canvas is known before it is made."""

from __future__ import annotations

import io
import random
import struct

import pytest
from PIL import Image

from function.images.frames import Frames, frames
from tests.function.images.make import gif_of, noise, save

SIDE = 24


def moving(format: str, count: int = 5) -> bytes:  # noqa: A002
    """An animation of noise."""
    first, *rest = [noise(SIDE, SIDE, seed) for seed in range(count)]
    return save(first, format, save_all=True, append_images=rest, duration=40)


@pytest.mark.parametrize("kind", ["GIF", "WEBP"])
def test_all_frames_are_counted_or_as_many_as_are_wanted(kind):
    data = moving(kind)
    assert frames(data) == Frames(5, (SIDE, SIDE), (SIDE, SIDE))
    assert frames(data, 2).count == 2
    assert frames(data).total == 5 * SIDE * SIDE


def test_what_is_no_animation_has_no_frames():
    for data in (b"", b"GIF89a", b"RIFF", save(noise(), "PNG"), save(noise(), "WEBP")):
        assert frames(data).count == 0
    assert frames(save(noise(), "GIF")).count == 1


@pytest.mark.parametrize(
    "between",
    [b"\0", b"\0" * 300, b"\x07junk", b"!\xfe\5notes\0", b"!\x01\0\0", b"!\xfe\0\x99"],
    ids=["zero", "zeros", "junk", "comment", "empty-extension", "empty-comment"],
)
def test_what_lies_between_frames_hides_none_of_them(between):
    data = gif_of([noise(SIDE, SIDE, seed) for seed in range(6)], between={2: between})
    with Image.open(io.BytesIO(data)) as opened:
        assert frames(data).count == opened.n_frames == 6


@pytest.mark.parametrize("kind", ["GIF", "WEBP"])
def test_no_decoder_ever_finds_more_frames_than_were_counted(kind):
    odd = random.Random(7)
    for _ in range(400):
        bent = bytearray(moving(kind, odd.randrange(2, 6)))
        for _ in range(odd.randrange(1, 4)):
            at = odd.randrange(len(bent))
            put = bytes(odd.choice((0, 0x21, 0x2C, 0x3B, 0xF9, 0xFE, 0xFF)) for _ in range(2))
            bent[at : at + odd.randrange(3)] = odd.choice((put, odd.randbytes(1), b""))
        data = bytes(bent)
        try:
            opened = Image.open(io.BytesIO(data), formats=[kind])
            there = opened.n_frames
        except Exception:
            continue
        assert frames(data).count >= there or there == 1
        assert kind == "WEBP" or frames(data).count == there


def test_a_frame_that_reaches_over_the_screen_counts_for_the_canvas_and_not_for_the_size():
    data = gif_of([noise(SIDE, SIDE)] * 3, places={1: (500, 900)})
    assert frames(data) == Frames(3, (SIDE, SIDE), (500 + SIDE, 900 + SIDE))


def test_a_screen_that_is_smaller_than_the_first_frame_grows_to_it():
    """As browsers and the decoder have it."""
    data = bytearray(gif_of([noise(SIDE, SIDE)] * 2))
    data[6:10] = struct.pack("<HH", 0, 3)
    assert frames(data).size == frames(data).canvas == (SIDE, SIDE)


def test_a_webp_that_does_not_say_that_it_is_animated_is_not():
    data = bytearray(moving("WEBP"))
    data[20] &= ~2
    assert frames(data).count == 0
    with pytest.raises(OSError, match="could not create decoder"):
        Image.open(io.BytesIO(data), formats=["WEBP"])
