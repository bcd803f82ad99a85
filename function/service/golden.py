"""Judging a swap by what it must give: the last thing between a warm-up and readiness."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.images.decode import decode
from function.runtime.sanity import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.pipeline import SwappedFace
    from warmup.models.golden import Golden

_CHANGED = 4
"""A difference of this much is more than noise of coding."""


def check(golden: Golden, image: bytes, faces: Sequence[SwappedFace]) -> None:
    """Compare the swap of the golden pair with what it must give.

    Args:
        golden: the expectation.
        image: the result as a file.
        faces: the faces that were swapped.

    Raises:
        WrongResultError: saying what was expected and what came.
    """
    distances = [face.after for face in faces]
    # a comparison with NaN is false
    if not distances or not all(distance <= golden.max_distance for distance in distances):
        raise WrongResultError(
            "golden check: from the source's identity the faces of the result are"
            f" {[round(distance, 3) for distance in distances]} away; right is one face at least,"
            f" and {golden.max_distance:g} at most"
        )
    right = decode(golden.image.read_bytes(), name="golden image").pixels
    result, original = (
        shrunk(decode(data, name="golden pair").pixels, right.shape[:2])
        for data in (image, golden.target.read_bytes())
    )
    idle = likeness(original, original, right)
    if not idle < golden.min_psnr:
        raise WrongResultError(
            f"golden check: a swap that did nothing would pass, as the target is like the golden"
            f" image to {idle:.1f} dB; min_psnr of {golden.min_psnr:g} is too little"
        )
    ratio = likeness(result, original, right)
    if not ratio >= golden.min_psnr:
        raise WrongResultError(
            f"golden check: the result is like the right one to {ratio:.1f} dB,"
            f" at least {golden.min_psnr:g} is right"
        )


def likeness(
    result: NDArray[np.uint8], original: NDArray[np.uint8], right: NDArray[np.uint8]
) -> float:
    """How alike a result is to the right one: the worse of PSNR in dB of all and of what changes.

    A face is a small part of a photo, so that as a whole a swap that did nothing would be much like
    a right one.

    Args:
        result: uint8 [H, W, 3].
        original: the target, of the same shape and colour order.
        right: what the result must be.
    """
    changes = (cv2.absdiff(original, right) > _CHANGED).any(axis=-1)
    return min(psnr(result, right), psnr(result[changes], right[changes]))


def psnr(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """Peak signal-to-noise ratio of two images uint8 of one shape in dB; infinite when equal."""
    error = np.square(one.astype(np.float32) - other.astype(np.float32))
    return 10 * math.log10(255**2 / float(error.mean())) if error.any() else math.inf


def shrunk(pixels: NDArray[np.uint8], size: tuple[int, ...]) -> NDArray[np.uint8]:
    """An image uint8 [H, W, 3] at another (height, width), by the mean of each area."""
    return np.asarray(cv2.resize(pixels, size[::-1], interpolation=cv2.INTER_AREA), np.uint8)
