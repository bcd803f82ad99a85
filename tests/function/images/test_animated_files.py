"""Written animations have every frame that was added, with its time, whatever is on it."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from function.images.frames import frames
from function.images.gif_file import GifFile, Indexed
from function.images.webp_file import WebpFile

SIZE = (40, 30)
TABLE = np.random.default_rng(1).integers(0, 256, (256, 3), np.uint8)
CLEAR = 255


def views(pattern: str) -> list[np.ndarray]:
    """uint8 [H, W] indices for each letter; the same letter gives the same view."""
    made = {}
    for letter in pattern:
        noise = np.random.default_rng(ord(letter)).integers(0, 200, SIZE[::-1], np.uint8)
        noise[:, 30:] = 7  # which no view changes
        made[letter] = noise
    return [made[letter] for letter in pattern]


def shown(data: bytes) -> tuple[list[np.ndarray], list[int]]:
    """uint8 [H, W, 4] and the milliseconds of each frame."""
    every, times = [], []
    with Image.open(io.BytesIO(data)) as image:
        for number in range(image.n_frames):
            image.seek(number)
            every.append(np.asarray(image.convert("RGBA")))
            times.append(image.info.get("duration", 0))
    return every, times


PATTERNS = ["AAAAA", "ABBBC", "AABBA", "ABABA", "AB"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_gif_has_each_frame_with_its_time_and_its_pixels(pattern):
    file, times = GifFile(SIZE, 0), [10 * n for n in range(len(pattern))]
    for view, time in zip(views(pattern), times, strict=True):
        file.add(Indexed(view, TABLE), time)
    every, read = shown(file.finish())
    assert read == times
    assert frames(file.finish()).count == len(pattern)
    for view, now in zip(views(pattern), every, strict=True):
        assert np.array_equal(now[..., :3], TABLE[view])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_webp_has_each_frame_with_its_time_and_its_pixels(pattern):
    file, times = WebpFile(SIZE, 3, 100), [10 * n + 1 for n in range(len(pattern))]
    smooth = [np.add.outer(np.arange(30), np.arange(40)) * (1 + ord(x) - 65) for x in pattern]
    pictures = [np.repeat(each.astype(np.uint8)[..., None], 3, -1) for each in smooth]
    for picture, time in zip(pictures, times, strict=True):
        file.add(Image.fromarray(picture), time)
    every, read = shown(file.finish())
    assert read == times
    for picture, now in zip(pictures, every, strict=True):
        assert np.abs(now[..., :3].astype(int) - picture).mean() < 6
    with Image.open(io.BytesIO(file.finish())) as image:
        assert image.info["loop"] == 3


def test_frames_that_look_equal_to_a_lossy_writer_stay_as_well():
    file = WebpFile(SIZE, 0, 50)
    for level in (100, 101, 101, 100):
        file.add(Image.new("RGB", SIZE, (level, 100, 100)), 40)
    assert shown(file.finish())[1] == [40] * 4


@pytest.mark.parametrize("order", ["012", "210", "0011", "0120"])
def test_what_is_transparent_in_a_gif_is_transparent_in_each_frame(order):
    """Holes come and go; "0" has none."""
    file, want = GifFile(SIZE, None), []
    for view, letter in zip(views(order), order, strict=True):
        indices = view.copy()
        indices[5:9, 3 : 3 + 9 * int(letter)] = CLEAR
        file.add(Indexed(indices, TABLE, CLEAR), 50)
        want.append(indices)
    every, _ = shown(file.finish())
    assert len(every) == len(order)
    for indices, now in zip(want, every, strict=True):
        assert np.array_equal(now[..., 3] == 0, indices == CLEAR)
        solid = indices != CLEAR
        assert np.array_equal(now[solid][..., :3], TABLE[indices[solid]])


def test_what_is_transparent_in_a_webp_is_transparent_in_each_frame():
    file, masks = WebpFile(SIZE, 0, 90), []
    for width in (0, 10, 10, 4, 0):
        alpha = np.full(SIZE[::-1], 255, np.uint8)
        alpha[4:20, 3 : 3 + width] = 0
        masks.append(alpha)
        picture = Image.new("RGB", SIZE, (10, 200, 90))
        picture.putalpha(Image.fromarray(alpha))
        file.add(picture, 50)
    every, times = shown(file.finish())
    assert times == [50] * 5
    for alpha, now in zip(masks, every, strict=True):
        assert np.array_equal(now[..., 3], alpha)


def test_a_gif_that_is_shown_once_says_nothing_of_it():
    once, often = GifFile(SIZE, None), GifFile(SIZE, 0)
    for file in (once, often):
        file.add(Indexed(views("A")[0], TABLE), 50)
    assert b"NETSCAPE" not in once.finish()
    assert b"NETSCAPE" in often.finish()


def gif_of_equal(count: int) -> bytes:
    file = GifFile(SIZE, 0)
    for view in views("A" * count):
        file.add(Indexed(view, TABLE), 50)
    return file.finish()


def webp_of_equal(count: int) -> bytes:
    file = WebpFile(SIZE, 0, 90)
    for _ in range(count):
        file.add(Image.effect_mandelbrot(SIZE, (-2, -1, 1, 1), 9).convert("RGB"), 50)
    return file.finish()


@pytest.mark.parametrize("write", [gif_of_equal, webp_of_equal])
def test_what_does_not_change_is_not_written_again(write):
    one, two, three = (len(write(count)) for count in (1, 2, 3))
    assert three - two == two - one < min(one, 900)
