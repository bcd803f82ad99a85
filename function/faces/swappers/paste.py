"""Putting a changed crop back where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import geometry

if TYPE_CHECKING:
    from numpy.typing import NDArray


def bounds(
    shape: tuple[int, ...], matrix: NDArray[np.float64], size: int
) -> tuple[int, int, int, int]:
    """The rectangle around a crop in the image it was cut out of: left, top, right, bottom.

    Args:
        shape: of the image, [H, W, …], inside of which the rectangle lies, perhaps empty.
        matrix: float64 [2, 3], image → crop.
        size: side of the crop.
    """
    square = np.array([[0, 0], [size, 0], [0, size], [size, size]])
    quad = geometry.apply(geometry.invert(matrix), square)
    limits = shape[1::-1]
    left, top = np.clip(np.floor(quad.min(0)), 0, limits).astype(int).tolist()
    right, bottom = np.clip(np.ceil(quad.max(0)), 0, limits).astype(int).tolist()
    return left, top, right, bottom


def paste(
    canvas: NDArray[np.uint8],
    patch: NDArray[np.uint8],
    mask: NDArray[np.float32],
    matrix: NDArray[np.float64],
    *,
    gray: bool,
) -> None:
    """Blend a crop into the canvas, in place, inside the rectangle around it only.

    Args:
        canvas: uint8 [H, W, 3] RGB.
        patch: uint8 [S, S, 3] RGB, the crop as it is to be.
        mask: float32 [S, S], how much of it counts, 0–1.
        matrix: float64 [2, 3], by which the crop was cut out (image → crop).
        gray: whether only the luminance of the patch counts.
    """
    left, top, right, bottom = bounds(canvas.shape, matrix, len(patch))
    if right <= left or bottom <= top:
        return
    back = geometry.invert(matrix)
    back[:, 2] -= left, top
    if gray:
        patch = cv2.cvtColor(cv2.cvtColor(patch, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    there = right - left, bottom - top
    region = canvas[top:bottom, left:right]
    drawn = geometry.crop(patch, back, there, cv2.BORDER_REPLICATE)
    share = geometry.crop(mask, back, there)
    region[:] = cv2.blendLinear(drawn, np.ascontiguousarray(region), share, 1 - share)
