"""Writes an animated WebP frame by frame: each one that is added is one of the file's.

libwebp's writer of animations merges frames that look equal; here one frame more is one frame more.
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_MOST_MS = (1 << 24) - 1
_REPLACE, _BLEND = 2, 0
"""What a frame does with what is below it."""
_ANIMATED, _ALPHA = 2, 16


class WebpFile:
    """A WebP that grows.

    Args:
        size: (width, height) of the canvas, at most 16,383 each.
        loop: how often it is shown, 0 for ever.
        quality: 1 to 100.
    """

    def __init__(self, size: tuple[int, int], loop: int, quality: int) -> None:
        self._size, self._quality = size, quality
        self._frames: list[bytes] = []
        self._loop, self._clear = loop & 0xFFFF, False
        self._last: NDArray[np.uint8] | None = None

    def add(self, image: Image.Image, duration: int) -> None:
        """Add a frame.

        Args:
            image: of mode RGB or RGBA and the size of the canvas.
            duration: how long it is shown, in milliseconds.
        """
        now = np.asarray(image.convert("RGBA"))
        left, top, right, bottom = self._changed(now)
        self._last = now
        if right > left:
            part, over = image.crop((left, top, right, bottom)), _REPLACE
            part.save(out := io.BytesIO(), "WEBP", quality=self._quality, method=1)
        else:  # nothing has changed: a clear pixel over what is there
            part, over = Image.new("RGBA", (1, 1)), _BLEND
            part.save(out := io.BytesIO(), "WEBP", lossless=True)
        self._clear |= part.mode == "RGBA"
        sizes = (left // 2, top // 2, part.width - 1, part.height - 1, min(duration, _MOST_MS))
        head = b"".join(number.to_bytes(3, "little") for number in sizes)
        self._frames.append(_chunk(b"ANMF", head + bytes([over]) + _pixels(out.getvalue())))

    def finish(self) -> bytes:
        """The whole file."""
        sides = b"".join((side - 1).to_bytes(3, "little") for side in self._size)
        flags = _ANIMATED | (_ALPHA if self._clear else 0)
        chunks = [
            _chunk(b"VP8X", bytes([flags, 0, 0, 0]) + sides),
            _chunk(b"ANIM", struct.pack("<IH", 0, self._loop)),
            *self._frames,
        ]
        return _chunk(b"RIFF", b"WEBP" + b"".join(chunks))

    def _changed(self, now: NDArray[np.uint8]) -> tuple[int, int, int, int]:
        """The rectangle that has changed, from even places as WebP has it; empty for none."""
        if self._last is None:
            return 0, 0, *self._size
        different = (self._last != now).any(-1)
        rows, columns = np.flatnonzero(different.any(1)), np.flatnonzero(different.any(0))
        if not len(rows):
            return 0, 0, 0, 0
        left, top = int(columns[0]) & ~1, int(rows[0]) & ~1
        return left, top, int(columns[-1]) + 1, int(rows[-1]) + 1


def _pixels(file: bytes) -> bytes:
    """The chunks of a still WebP that hold its pixels."""
    return b"".join(chunk for name, chunk in _chunks(file) if name in {b"ALPH", b"VP8 ", b"VP8L"})


def _chunks(file: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(name, whole chunk) of each chunk of a WebP."""
    at = 12
    while at < len(file):
        size = int.from_bytes(file[at + 4 : at + 8], "little")
        end = at + 8 + size + size % 2
        yield file[at : at + 4], file[at:end]
        at = end


def _chunk(name: bytes, data: bytes) -> bytes:
    """A chunk with its length, filled up to an even one."""
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
