"""Writes an animated GIF frame by frame: each one that is added is one of the file's.

Pillow's writer merges equal frames into one; here one frame more is one frame more.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KEEP, _CLEAR = 1, 2
"""What becomes of a frame when the next is shown: it stays, or its place is cleared."""
_MOST_TICKS = 65_535

Rectangle = tuple[int, int, int, int]
"""(left, top, right, bottom), whole pixels."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """An image of at most 256 colours.

    Attributes:
        indices: uint8 [H, W], the colour of each pixel.
        table: uint8 [256, 3], the colours in RGB.
        clear: which of them is transparent; None for none.
    """

    indices: NDArray[np.uint8]
    table: NDArray[np.uint8]
    clear: int | None = None

    def shown(self) -> NDArray[np.uint8]:
        """uint8 [H, W, 4], the pixels in RGBA; transparent ones are all zeros."""
        colours = np.concatenate([self.table, np.full((256, 1), 255, np.uint8)], 1)
        if self.clear is not None:
            colours[self.clear] = 0
        return colours[self.indices]


@dataclass(frozen=True, slots=True)
class _Held:
    """A frame that is written when the next one says what has to become of it.

    Attributes:
        image: it.
        ticks: how long it is shown, in hundredths of a second.
        shown: uint8 [H, W, 4], what is on the screen then.
    """

    image: Indexed
    ticks: int
    shown: NDArray[np.uint8]


class GifFile:
    """A GIF that grows.

    Args:
        size: (width, height) of the screen, at most 65,535 each.
        loop: how often it is shown, 0 for ever; None for once, of which the file then says nothing.
    """

    def __init__(self, size: tuple[int, int], loop: int | None) -> None:
        self._size = size
        self._parts = [b"GIF89a" + struct.pack("<HHBBB", *size, 0x70, 0, 0)]
        if loop is not None:
            self._parts.append(b"!\xff\x0bNETSCAPE2.0\3\1" + struct.pack("<HB", loop & 0xFFFF, 0))
        self._held: _Held | None = None
        self._below: NDArray[np.uint8] | None = None  # as `shown`, before the frame that is held

    def add(self, image: Indexed, duration: int) -> None:
        """Add a frame of the size of the screen that is shown for so many milliseconds."""
        shown = image.shown()
        if self._held:
            hides = (shown[..., 3] < self._held.shown[..., 3]).any()
            self._write(self._held, _CLEAR if hides else _KEEP)
        self._held = _Held(image, min(duration // 10, _MOST_TICKS), shown)

    def finish(self) -> bytes:
        """The whole file."""
        held, self._held = self._held, None
        if held:
            self._write(held, _KEEP)
        return b"".join([*self._parts, b";"])

    def _write(self, held: _Held, disposal: int) -> None:
        """Write a frame: all of it where its place is cleared afterwards, else what is new."""
        if self._below is None or disposal == _CLEAR:
            changed = 0, 0, *self._size
        else:
            changed = _changed(self._below, held.shown)
        self._below = np.zeros_like(held.shown) if disposal == _CLEAR else held.shown
        left, top, right, bottom = changed
        flags, table, pixels = _coded(held.image, changed)
        clear = held.image.clear
        packed = disposal << 2 | (clear is not None)
        self._parts += [
            b"!\xf9\4" + struct.pack("<BHBB", packed, held.ticks, clear or 0, 0),
            struct.pack("<BHHHHB", 0x2C, left, top, right - left, bottom - top, flags),
            table,
            pixels,
        ]


def _changed(before: NDArray[np.uint8], now: NDArray[np.uint8]) -> Rectangle:
    """The rectangle outside of which nothing has changed; one pixel where nothing has."""
    different = (before != now).any(-1)
    rows, columns = np.flatnonzero(different.any(1)), np.flatnonzero(different.any(0))
    if not len(rows):
        return 0, 0, 1, 1
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _coded(image: Indexed, part: Rectangle) -> tuple[int, bytes, bytes]:
    """A part of an image as a GIF has it: the flags of its colours, these, and the pixels."""
    left, top, right, bottom = part
    cut = Image.fromarray(np.ascontiguousarray(image.indices[top:bottom, left:right]), "P")
    cut.putpalette(image.table.tobytes())
    cut.save(out := io.BytesIO(), "GIF", optimize=False, interlace=0)
    file = out.getvalue()
    colours = file[10] & 7
    end = 13 + (3 << colours + 1)
    at = file.index(b",", end)
    return 0x80 | colours, file[13:end], file[at + 10 : -1]
