"""How many frames an animation has, and what decoding them takes, found without decoding any.

A GIF is walked as its decoder walks it, stray bytes included, so that what is counted here is what
would be decoded. Light to import, as HTTP and the command line need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMENT, _APPLICATION = 0xFE, 0xFF
_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, 0x3B
_ANIMATED = 2  # of the flags of a WebP


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of a GIF or a WebP.

    Attributes:
        count: how many there are.
        size: (width, height) of what is shown: the screen, or the first frame where that is larger.
        canvas: (width, height) that the decoder needs. A later frame of a GIF may reach over the
            screen, where nobody sees it and the decoder still makes room for it.
    """

    count: int
    size: tuple[int, int]
    canvas: tuple[int, int]

    @property
    def pixels(self) -> int:
        """Of the decoder's canvas."""
        return self.canvas[0] * self.canvas[1]

    @property
    def total(self) -> int:
        """Pixels of the decoder's canvas, over all frames."""
        return self.count * self.pixels


def frames(data: bytes | bytearray, most: int = 1_000_000) -> Frames:
    """The frames of a GIF or a WebP; no frames for any other file.

    Args:
        data: the whole file.
        most: as soon as so many frames are found, counting ends.
    """
    if data.startswith((b"GIF87a", b"GIF89a")):
        return _of_gif(data, most)
    if data.startswith(b"RIFF") and data[8:16] == b"WEBPVP8X":
        return _of_webp(data, most)
    return Frames(0, (0, 0), (0, 0))


def _of_webp(data: bytes | bytearray, most: int) -> Frames:
    """Frames of a WebP, whose decoder refuses any that reaches over the canvas."""
    size = _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    end = min(len(data), 8 + _little(data, 4, 4))
    count, at = 0, 12
    animated = len(data) > 20 and data[20] & _ANIMATED
    while animated and at + 8 <= end and count < most:
        count += data[at : at + 4] == b"ANMF"
        length = _little(data, at + 4, 4)
        at += 8 + length + length % 2
    return Frames(count, size, size)


def _of_gif(data: bytes | bytearray, most: int) -> Frames:
    width, height = _little(data, 6, 2), _little(data, 8, 2)
    size = canvas = width, height
    count = 0
    for left, top, wide, high in _extents(data):
        canvas = max(canvas[0], left + wide), max(canvas[1], top + high)
        count += 1
        if count == 1:
            size = canvas
        if count == most:
            break
    return Frames(count, size, canvas)


def _extents(data: bytes | bytearray) -> Iterator[tuple[int, int, int, int]]:
    """(left, top, width, height) of each image of a GIF, as far as its head is whole."""
    at, first = 13 + _table(data, 10), True
    while at < len(data) and data[at] != _TRAILER:
        if data[at] == _EXTENSION:
            at = _extension_end(data, at + 1, first=first)
        elif data[at] == _IMAGE:
            pixels = at + 10 + _table(data, at + 9)
            if pixels >= len(data):
                return
            yield (
                _little(data, at + 1, 2),
                _little(data, at + 3, 2),
                _little(data, at + 5, 2),
                _little(data, at + 7, 2),
            )
            at, first = _parts_end(data, pixels + 1), False
        else:
            at += 1  # a stray byte, over which the decoder goes as well


def _extension_end(data: bytes | bytearray, at: int, *, first: bool) -> int:
    """Where an extension ends for the decoder, which begins at its label.

    The decoder takes an extension other than a comment for one with at least one part: where there
    is none, it takes what comes next for its parts.
    """
    label, at = (data[at] if at < len(data) else _COMMENT), at + 1
    if label == _COMMENT:
        return _parts_end(data, at)
    start, at = at, _part_end(data, at)
    if label == _APPLICATION and first and data[start + 1 : start + 12] == b"NETSCAPE2.0":
        at = _part_end(data, at)
    return _parts_end(data, at)


def _table(data: bytes | bytearray, at: int) -> int:
    """Bytes of the table of colours that the flags at this place announce."""
    flags = data[at] if at < len(data) else 0
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _part_end(data: bytes | bytearray, at: int) -> int:
    """Where a part with its length before it ends."""
    return at + 1 + (data[at] if at < len(data) else 0)


def _parts_end(data: bytes | bytearray, at: int) -> int:
    """Where a row of parts ends, after the empty one that closes it."""
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1


def _little(data: bytes | bytearray, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
