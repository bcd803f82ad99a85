"""What happens to pictures on their way: each takes pixels and gives what somebody would see."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import cv2
import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]
    Attack = Callable[[Pixels], Pixels]


def saved(pixels: Pixels, quality: int, kind: str = "JPEG") -> Pixels:
    """As a file of that kind has it."""
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind, quality=quality)
    return np.asarray(Image.open(out).convert("RGB"))


def scaled(pixels: Pixels, factor: float) -> Pixels:
    """Resized the way programs do it."""
    width, height = (max(round(factor * n), 1) for n in pixels.shape[1::-1])
    image = Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(image)


def _cropped(pixels: Pixels) -> Pixels:
    """A quarter of its area is cut off: from the left, the top and the bottom."""
    height, width = pixels.shape[:2]
    return pixels[round(height * 0.08) : round(height * 0.97), round(width * 0.157) :]


def _screenshot(pixels: Pixels) -> Pixels:
    """Shown smaller on a page."""
    small = scaled(pixels, 0.8)
    height, width = small.shape[:2]
    page = np.full((height + 90, width + 47, 3), (244, 245, 247), np.uint8)
    page[61 : 61 + height, 23 : 23 + width] = small
    return saved(page, 85)


def _turned(pixels: Pixels) -> Pixels:
    height, width = pixels.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), 10, 1)
    return np.asarray(cv2.warpAffine(pixels, matrix, (width, height)), np.uint8)


def _levels(pixels: Pixels) -> Pixels:
    """Brighter, with more contrast."""
    levels = (pixels.astype(np.float32) - 128) * 1.2 + 140
    return np.asarray(np.clip(levels, 0, 255), np.uint8)


ATTACKS: dict[str, Attack] = {
    "none": lambda pixels: pixels,
    "JPEG 70": lambda pixels: saved(pixels, 70),
    "WebP 75": lambda pixels: saved(pixels, 75, "WEBP"),
    "0.5 + JPEG 80": lambda pixels: saved(scaled(pixels, 0.5), 80),
    "quarter cut off + JPEG 85": lambda pixels: saved(_cropped(pixels), 85),
    "screenshot (0.8 + JPEG 85)": _screenshot,
    "mirror + JPEG 85": lambda pixels: saved(np.ascontiguousarray(pixels[:, ::-1]), 85),
    "0.75 + JPEG 80": lambda pixels: saved(scaled(pixels, 0.75), 80),
    "1.5 + JPEG 80": lambda pixels: saved(scaled(pixels, 1.5), 80),
    "2 + JPEG 80": lambda pixels: saved(scaled(pixels, 2), 80),
    "messenger, 2 MP (0.74 + JPEG 70)": lambda pixels: saved(scaled(pixels, 0.74), 70),
    "messenger, 12 MP (0.32 + JPEG 70)": lambda pixels: saved(scaled(pixels, 0.32), 70),
    "brighter, more contrast + JPEG 85": lambda pixels: saved(_levels(pixels), 85),
    "turned by 10° + JPEG 85": lambda pixels: saved(_turned(pixels), 85),
    "JPEG 85, then 70": lambda pixels: saved(saved(pixels, 85)[3:, 5:], 70),
}
"""Each attack by the name that the table has."""
