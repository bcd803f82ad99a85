"""The golden check: a wrong result, NaN or a black image is a failure."""

from __future__ import annotations

import io
import math
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from PIL import Image

from function import settings
from function.process.wiring.service import build_service, embedded
from function.requests import SwapRequest, Upload
from function.runtime.sanity import WrongResultError
from function.service import golden
from function.service.golden import check
from function.telemetry.timings import Timings
from warmup.models.golden import read

GOLDEN = read(embedded())
SOURCE, TARGET = GOLDEN.source.read_bytes(), GOLDEN.target.read_bytes()


@pytest.fixture(scope="module")
def result():
    """The embedded set's own swap of the golden pair."""
    import asyncio

    async def swap():
        service = build_service(settings.load({}))
        await service.load()
        wanted = SwapRequest((Upload(SOURCE, "source"),), Upload(TARGET, "target"))
        swapped = await service.swap(wanted, Timings())
        service.close()
        return swapped

    return asyncio.run(swap())


def changed(result, change):
    """The result with its pixels (float RGB) changed."""
    pixels = np.asarray(Image.open(io.BytesIO(result.image))).astype(float)
    out = io.BytesIO()
    Image.fromarray(np.clip(change(pixels), 0, 255).astype(np.uint8)).save(out, "PNG")
    return out.getvalue()


def face(after):
    return SimpleNamespace(after=after)


def test_the_embedded_set_passes(result):
    check(GOLDEN, result.image, result.faces)


def test_noise_and_another_coding_pass(result):
    noise = np.random.default_rng(1).normal(0, 3, (512, 512, 3))
    check(GOLDEN, changed(result, lambda pixels: pixels + noise), result.faces)


@pytest.mark.parametrize("distance", [math.nan, GOLDEN.max_distance + 0.01, math.inf])
def test_another_identity_or_nan_is_wrong(result, distance):
    with pytest.raises(WrongResultError, match="from the source's identity"):
        check(GOLDEN, result.image, [face(0.1), face(distance)])


def test_no_face_is_wrong(result):
    with pytest.raises(WrongResultError, match="one face at least"):
        check(GOLDEN, result.image, [])


@pytest.mark.parametrize(
    "change",
    [
        lambda pixels: pixels * 0,
        lambda pixels: pixels * 0 + 128,
        lambda pixels: pixels[..., ::-1],
        lambda pixels: pixels[:, ::-1],
        lambda pixels: pixels * 0.8,
    ],
    ids=["black", "gray", "colours exchanged", "mirrored", "dark"],
)
def test_a_wrong_image_is_wrong(result, change):
    with pytest.raises(WrongResultError, match="like the right one"):
        check(GOLDEN, changed(result, change), result.faces)


def test_a_swap_that_did_nothing_is_wrong(result):
    with pytest.raises(WrongResultError, match="like the right one"):
        check(GOLDEN, TARGET, result.faces)


def test_a_black_face_alone_is_wrong(result):
    box = result.faces[0].face.box

    def black(pixels):
        pixels[box.top : box.bottom, box.left : box.right] = 0
        return pixels

    with pytest.raises(WrongResultError, match="like the right one"):
        check(GOLDEN, changed(result, black), result.faces)


def test_psnr_is_that_of_opencv():
    rng = np.random.default_rng(2)
    one, other = rng.integers(0, 256, (2, 40, 50, 3), np.uint8)
    assert golden.psnr(one, other) == pytest.approx(cv2.PSNR(one, other))
    assert golden.psnr(one, one) == math.inf
