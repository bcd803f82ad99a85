"""Draws the faces that were found on a photo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from function.faces.face import Face

_EMBER = (255, 122, 26)
_DARK = (24, 20, 18)


def draw(pixels: NDArray[np.uint8], faces: Iterable[Face]) -> NDArray[np.uint8]:
    """A copy of a photo with each face's box, number, five points and all other landmarks.

    Args:
        pixels: uint8 [H, W, 3], RGB.
        faces: the faces found in it.

    Returns:
        uint8 [H, W, 3], RGB.
    """
    image = Image.fromarray(pixels)
    pen = ImageDraw.Draw(image)
    # One width for the whole photo, so that it reads the same at every resolution.
    width = max(2, round(max(image.size) / 500))
    for face in faces:
        box = face.box
        for x, y in () if face.outline is None else face.outline:
            _dot(pen, x, y, width / 4, _EMBER)
        pen.rectangle(
            (box.left, box.top, box.right - 1, box.bottom - 1), outline=_EMBER, width=width
        )
        for x, y in face.five:
            _dot(pen, x, y, width * 2, _DARK)
            _dot(pen, x, y, width * 1.3, (255, 255, 255))
        _label(pen, str(face.index), box.left, box.top, width)
    return np.asarray(image)


def _dot(
    pen: ImageDraw.ImageDraw, x: float, y: float, radius: float, fill: tuple[int, ...]
) -> None:
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)


def _label(pen: ImageDraw.ImageDraw, text: str, x: float, y: float, width: int) -> None:
    """A filled tag in the upper left corner of a box."""
    font = ImageFont.load_default(size=max(12, width * 8))
    left, top, right, bottom = pen.textbbox((0, 0), text, font=font)
    pad = width * 2
    pen.rectangle((x, y, x + right - left + 2 * pad, y + bottom - top + 2 * pad), fill=_EMBER)
    pen.text((x + pad - left, y + pad - top), text, fill=_DARK, font=font)
