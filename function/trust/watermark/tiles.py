"""Marks of whole pictures: one square, repeated like tiles, and read from all of them together.

Such a mark changes pixels everywhere, and is for faces that are too small for one of their own. A
tile is 256 to 640 pixels wide, by the size of the picture. The reader does not know how a picture
was scaled since: what repeats shows in the autocorrelation, and so the width of a tile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.trust.watermark import reading
from function.trust.watermark.carriers import SIDE, rings
from function.trust.watermark.square import flattened, half_spectrum, luma
from function.trust.watermark.writing import Strength, mark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from function.trust.watermark.keys import WatermarkKey
    from function.trust.watermark.reading import Found

    Floats = NDArray[np.float32]
    Pixels = NDArray[np.uint8]
    Waves = NDArray[np.complex64]

USE = "picture"
_NARROW, _WIDE, _PER_SIDE = 256, 640, 8
_USUAL = 42.5
"""Decibels below the full range, over the picture."""
_LEAST, _MOST, _WANTED = 0.7, 1.2, 1.3
_EVEN = 6.0
"""Where there are fewer levels than this around, the mark is weaker: noise shows in a clear sky."""
_READ = 1024
"""How much of each side of a picture is read, around its middle, in pixels."""
_FEWEST = 40
"""Pixels to which a tile may have shrunk."""
_TRIED = 4
SURE = 7.0
"""As `Reach.sure`: a mark that is spread over many tiles is heard far better than noise."""
_NEAR = 0.998, 0.999, 1.0, 1.001, 1.002
"""Scales around a likely width: an error of a thousandth is a sample over eight tiles."""


def width_of(width: int, height: int) -> int:
    """How wide a tile is in a picture of that size, in pixels."""
    return min(max(round(max(width, height) / _PER_SIDE), _NARROW), _WIDE)


def write(canvas: Pixels, key: WatermarkKey, payload: int) -> None:
    """Mark a whole picture; what is gray stays gray.

    Args:
        canvas: uint8 [H, W, 3] RGB, changed in place.
        key: the key.
        payload: 48 bits.
    """
    height, width = canvas.shape[:2]
    host = _TiledHost(luma(canvas), SIDE / width_of(width, height))
    usual = 255 / 10 ** (_USUAL / 20)
    strength = Strength(usual, usual * _LEAST, usual * _MOST, _WANTED)
    even = np.ones((SIDE, SIDE), np.float32)
    inner = rings(key.secret, USE)[0]
    added = mark(host, even, [(inner, 1.0)], payload, strength, steady=False)
    levels = cv2.resize(host.spread(added), (width, height), interpolation=cv2.INTER_CUBIC)
    whole = np.rint(levels, out=levels).astype(np.int16)
    canvas[:] = cv2.add(canvas, cv2.merge([whole, whole, whole]), dtype=cv2.CV_8U)


def folded(gray: Pixels) -> Iterator[list[Floats]]:
    """An image as the tiles that lie over one another, for each likely width of a tile.

    Args:
        gray: uint8 [H, W].

    Yields:
        float32 [128, 128] each; several, for slightly different widths, of each likely one.
    """
    height, width = gray.shape
    left, top = max((width - _READ) // 2, 0), max((height - _READ) // 2, 0)
    part = gray[top : top + _READ, left : left + _READ]
    for tile in _widths(part):
        yield [_folded(flattened(_scaled(part, SIDE / (tile * by)))[0]) for by in _NEAR]


def find(squares: list[Floats], key: WatermarkKey, *, mirrored: bool) -> Found:
    """Where a mark fits best in one of some squares that repeat themselves.

    Args:
        squares: float32 [128, 128] each.
        key: the key.
        mirrored: look at them in a mirror.
    """
    shown = (square[:, ::-1] if mirrored else square for square in squares)
    inner = rings(key.secret, USE)[:1]
    found = (reading.anywhere(half_spectrum(square), inner) for square in shown)
    return max(found, key=lambda each: each.z)


class _TiledHost:
    """A picture as the tiles that lie over one another.

    Args:
        gray: uint8 [H, W].
        scale: samples for each pixel.
    """

    def __init__(self, gray: Pixels, scale: float) -> None:
        self._samples = _scaled(gray, scale)
        around = flattened(self._samples)[1]
        self._shape = np.minimum((around + 1.5) / np.float32(_EVEN), 1)

    def waves(self, added: Floats | None) -> Waves:
        """See `Host`."""
        samples = self._samples if added is None else self._samples + self.spread(added)
        return half_spectrum(_folded(flattened(samples)[0]))

    def later(self, added: Floats) -> Waves:
        """See `Host`."""
        return self.waves(added)

    def spread(self, added: Floats) -> Floats:
        """A square over the whole picture: float32 of its samples."""
        height, width = self._samples.shape
        times = -(-height // SIDE), -(-width // SIDE)
        return np.asarray(np.tile(added, times)[:height, :width] * self._shape)


def _scaled(gray: Pixels, scale: float) -> Floats:
    height, width = gray.shape
    size = max(round(width * scale), 8), max(round(height * scale), 8)
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(gray, size, interpolation=way), np.float32)


def _folded(fine: Floats) -> Floats:
    """The sum of all tiles: float32 [128, 128]."""
    height, width = fine.shape
    whole = np.zeros((-(-height // SIDE) * SIDE, -(-width // SIDE) * SIDE), np.float32)
    whole[:height, :width] = fine
    tiles = whole.reshape(whole.shape[0] // SIDE, SIDE, -1, SIDE)
    return np.asarray(tiles.sum((0, 2)), np.float32)


def _widths(part: Pixels) -> list[float]:
    """How wide tiles may be here, likeliest first, by what repeats; and what they were."""
    fine, _ = flattened(part.astype(np.float32))
    height, width = fine.shape
    waves = np.fft.rfft2(fine, (2 * height, 2 * width))
    waves = waves / (cv2.blur(np.abs(waves), (31, 31)) + 1e-6)
    again = np.fft.irfft2(waves.real**2 + waves.imag**2).astype(np.float32)
    side = min(height, width)
    tiles = np.arange(_FEWEST, max(side * 0.75, _FEWEST + 1), 0.25, dtype=np.float32)
    score, count = np.zeros_like(tiles), np.full_like(tiles, 1e-6)
    for down in range(4):
        for right in range(-3, 4):
            if down > 0 or right > 0:
                x, y = right * tiles, down * tiles
                inside = (np.abs(x) < 0.8 * side) & (
                    y < 0.8 * side
                )  # else hardly anything overlaps
                score += _looked_up(again, x, y) * inside
                count += inside
    score /= np.sqrt(count)
    best: list[float] = []
    for place in np.argsort(score)[::-1]:
        tile = float(tiles[place])
        if all(abs(tile / each - 1) > 0.03 for each in best):
            best.append(tile)
        if len(best) == _TRIED:
            break
    return [*best, float(width_of(width, height))]


def _looked_up(again: Floats, x: Floats, y: Floats) -> Floats:
    """The autocorrelation at lags, of which each side may be negative."""
    height, width = again.shape
    places = np.mod(x, width)[None], np.mod(y, height)[None]
    mode = cv2.BORDER_WRAP
    return np.asarray(cv2.remap(again, *places, cv2.INTER_LINEAR, borderMode=mode)[0])
