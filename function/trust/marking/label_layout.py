"""Makes the letters and the plate of a label, in a size that fits a picture; with Pillow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from function.trust.marking.label_fonts import PROBE, opened

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.ImageFont import FreeTypeFont

    from function.trust.marking.label_choice import LabelFont

LEAST = 0.052
"""How high letters are, of the shortest side: 5 %, and their smooth edges."""

_LEGIBLE = 12  # pixels, below which letters are none
_MOST = 0.2  # of the shortest side, which even these do not exceed
_MARGIN = 0.025  # from the edges, of the shortest side
_PADDING = 0.35  # around the letters, of their height
_LEADING = 1.3  # from line to line, of the height of letters
_ROUND = 0.3  # of the plate's corners, of the height of letters


@dataclass(frozen=True, slots=True)
class LabelLayout:
    """A label for a picture.

    Attributes:
        plate: uint8 [h, w], how much of each pixel is of the plate.
        letters: uint8 [h, w], how much of each is of letters.
        margin: how far it is from the edges, in pixels.
    """

    plate: NDArray[np.uint8]
    letters: NDArray[np.uint8]
    margin: int


def lay_out(text: str, font: LabelFont, width: int, height: int) -> LabelLayout:
    """A label for a picture of a size, in pixels.

    Lines are broken where the text does not fit. Where it does not fit in lines, which is so in
    pictures smaller than letters that can be read, letters are smaller as well.
    """
    side = min(width, height)
    margin = round(side * _MARGIN)
    wanted = max(side * LEAST, min(_LEGIBLE, side * _MOST))
    for tall in (*np.linspace(wanted, side * LEAST, 8), side * LEAST):
        pad = round(tall * _PADDING)
        room = width - 2 * margin - 3 * pad, height - 2 * margin - 2 * pad
        sized = _sized(text, font, tall)
        letters = _written(_balanced(text, sized, room[0]), sized, math.ceil(tall))
        if letters.shape[0] <= room[1]:
            break
    letters = np.pad(letters, ((pad, pad), (pad * 3 // 2, pad * 3 // 2)))
    letters = letters[: height - 2 * margin, : width - 2 * margin]
    return LabelLayout(_plate(letters.shape, tall * _ROUND), letters, margin)


def _sized(text: str, font: LabelFont, tall: float) -> FreeTypeFont:
    """The font in the smallest size in which the letters of a text are so high, in pixels."""
    size = max(1, math.floor(tall * PROBE / _ink(text, opened(font, PROBE))))
    while _ink(text, opened(font, size)) < tall:
        size += 1
    return opened(font, size)


def _ink(text: str, font: FreeTypeFont) -> int:
    """From the top of the highest letter to the bottom of the lowest, in pixels."""
    _, top, _, bottom = font.getbbox(text)
    return max(1, math.ceil(bottom - top))


def _balanced(text: str, font: FreeTypeFont, room: float) -> list[str]:
    """A text in as few lines as fit into a width, in pixels, and those of nearly one length."""
    lines = _lines(text, font, room)
    least = max(font.getlength(word) for word in text.split())
    for narrower in np.linspace(room, min(least, room), 24):
        fewer = _lines(text, font, narrower)
        if len(fewer) > len(lines):
            break
        lines = fewer
    return lines


def _lines(text: str, font: FreeTypeFont, room: float) -> list[str]:
    """A text in lines that fit into a width, in pixels; words that do not are broken."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if font.getlength(longer) <= room:
            line = longer
            continue
        if line:
            lines.append(line)
        *whole, line = _broken(word, font, room)
        lines += whole
    return [*lines, line]


def _broken(word: str, font: FreeTypeFont, room: float) -> list[str]:
    """A word in pieces that fit into a width; at least one letter in each."""
    pieces = [""]
    for letter in word:
        if pieces[-1] and font.getlength(pieces[-1] + letter) > room:
            pieces.append("")
        pieces[-1] += letter
    return pieces


def _written(lines: list[str], font: FreeTypeFont, tall: int) -> NDArray[np.uint8]:
    """Lines of letters, uint8 [h, w], cut to what is inked."""
    from PIL import Image, ImageDraw

    step = round(tall * _LEADING)
    boxes = [font.getbbox(line) for line in lines]
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    right = max(box[2] for box in boxes)
    bottom = max(step * number + box[3] for number, box in enumerate(boxes))
    image = Image.new("L", (math.ceil(right - left), math.ceil(bottom - top)))
    for number, line in enumerate(lines):
        ImageDraw.Draw(image).text((-left, step * number - top), line, fill=255, font=font)
    letters: NDArray[np.uint8] = np.asarray(image)
    return letters


def _plate(shape: tuple[int, ...], radius: float) -> NDArray[np.uint8]:
    """A rectangle with round corners, uint8 [h, w], smooth at its edge."""
    plate = np.full(shape, 255, np.uint8)
    size = max(1, min(math.ceil(radius), min(shape) // 2))
    away = size - 0.5 - np.arange(size)  # from the middle of the circle, pixel by pixel
    inside = size + 0.5 - np.hypot(away[:, None], away)
    corner = np.rint(np.clip(inside, 0, 1) * 255).astype(np.uint8)
    for flipped in (plate, plate[::-1], plate[:, ::-1], plate[::-1, ::-1]):
        flipped[:size, :size] = corner
    return plate
