"""Finding a mark in a square whose place is about known, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from function.trust.watermark.carriers import SIDE, WIDTH
from function.trust.watermark.code import CODED
from function.trust.watermark.square import cut, loudness, moved, spectrum

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from function.trust.watermark.carriers import Ring

    Floats = NDArray[np.float32]
    Waves = NDArray[np.complex64]
    Matrix = NDArray[np.float64]
    Rings = tuple[Ring, ...]
    _Place = tuple[float, Waves, Matrix]  # how well a mark fits there, its waves, part to square

_FINEST = 0.003
"""To which scale and angle (rad) are found: that moves the rim of the square by 0.2 samples."""
_HOPEFUL = 5.5
"""How well a mark has to fit from afar for a place to be looked at more closely."""
_SEEN, _FOLLOWED = 5, 2
"""How many of the places that look best from afar are looked at, and how many of these closely."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far around a first guess is searched.

    Attributes:
        scale, angle: in steps, to both sides.
        shift: in samples, to all sides.
        step: of scale and of angle (rad).
        sure: how sure, in standard deviations of noise, a place has to be before its bits are
            decoded. Noise alone gets this far in a part of all searches, and 16 bits of check sum
            and 8 of the key then agree once in 2^24 times (docs/watermark.md has the sum).
    """

    scale: int
    angle: int
    shift: int
    step: float
    sure: float

    @property
    def tries(self) -> int:
        """How many places are looked at."""
        return (2 * self.scale + 1) * (2 * self.angle + 1) * (2 * self.shift + 1) ** 2


@dataclass(frozen=True, slots=True)
class Found:
    """A square in the place where a mark fits best.

    Attributes:
        z: how surely there is one, in standard deviations of noise.
        bits: float32 [288], what it says about the coded bits; positive for 1.
        inner: the same by the inner ring alone, for pictures that have lost the outer one.
        matrix: float64 [2, 3], part to square.
    """

    z: float
    bits: Floats
    inner: Floats
    matrix: Matrix


def find(part: NDArray[np.uint8], first: Matrix, rings: Rings, reach: Reach) -> Found:
    """The place around a first guess where a mark fits best.

    Where the known waves are heard, from afar; then closely, where also the others agree most, as
    all signs of a coded bit do where there is a mark.

    Args:
        part: uint8 [h, w], see `part_around`.
        first: float64 [2, 3], part to square.
        rings: of the key.
        reach: how far to search.
    """
    places = sorted(_places(part, first, rings, reach), key=lambda each: each[0], reverse=True)
    seen = [_settled(part, matrix, rings, 0.35) for _, matrix in places[:_SEEN]]
    seen.sort(key=lambda each: each[0], reverse=True)
    closer = (_closer(part, each, rings, reach.step) for each in seen[:_FOLLOWED])
    fit, waves, matrix = max(closer, key=lambda each: each[0])
    return Found(fit / 2**0.5, soft_bits(waves, rings), said(waves, rings[0]), matrix)


def anywhere(waves: Waves, rings: Rings) -> Found:
    """The shift by which a square that repeats itself fits best.

    Args:
        waves: complex64 [128 · 65], not whitened.
        rings: of the key.
    """
    waves = np.asarray(waves * loudness(waves))
    _, shift = _shifted(waves, rings, SIDE // 2 - 1)
    best = (-np.inf, waves)
    by = (float(shift[0]), float(shift[1]))
    for step in (0.5, 0.25, 0.12):
        shifts = [(by[0] + x * step, by[1] + y * step) for x in (-1, 0, 1) for y in (-1, 0, 1)]
        there = [waves * _ramp(*each) for each in shifts]
        fits = [sum(_heard(each, rings)) for each in there]
        place = int(np.argmax(fits))
        by, best = shifts[place], (fits[place], there[place])
    bits = soft_bits(best[1], rings)
    return Found(best[0] / 2**0.5, bits, bits, np.array([[1.0, 0, by[0]], [0, 1, by[1]]]))


def soft_bits(waves: Waves, rings: Rings) -> Floats:
    """What waves say about the coded bits: float32 [288].

    Each ring counts as much as its known waves are heard.

    Args:
        waves: complex64, whitened, of a square in its place.
        rings: of the key.
    """
    bits = np.zeros(CODED, np.float32)
    for ring in rings:
        clear = float(np.vdot(ring.phases, waves[ring.known]).real) / len(ring.known)
        bits += np.float32(max(clear, 0.0)) * said(waves, ring)
    return bits


def said(waves: Waves, ring: Ring) -> Floats:
    """What the waves of one ring say about each coded bit: float32 [288]."""
    values = waves[ring.places]
    chips = np.concatenate([values.real, values.imag]) * ring.signs
    return np.asarray(chips.reshape(-1, CODED).sum(0))


def _places(
    part: NDArray[np.uint8], first: Matrix, rings: Rings, reach: Reach
) -> Iterator[tuple[float, Matrix]]:
    """How surely known waves are heard at each scale and angle, with the best shift."""
    for scale, angle in _grid(reach.scale, reach.angle, reach.step):
        matrix = moved(first, scale, angle)
        z, shift = _shifted(_waves(part, matrix), rings, reach.shift)
        yield z, moved(matrix, 0, 0, shift)


def _closer(part: NDArray[np.uint8], best: _Place, rings: Rings, step: float) -> _Place:
    """Follow how well a mark fits, uphill, to the top."""
    while step > _FINEST and best[0] > _HOPEFUL:
        step /= 2
        start = best[2]
        tries = (_settled(part, moved(start, *by), rings, 30 * step) for by in _grid(1, 1, step))
        best = max(best, *tries, key=lambda each: each[0])
    return best


def _settled(part: NDArray[np.uint8], matrix: Matrix, rings: Rings, step: float) -> _Place:
    """The best of a place and its neighbours, a part of a sample away."""
    waves = _waves(part, matrix)
    shifts = [(x * step, y * step) for x in (-1, 0, 1) for y in (-1, 0, 1)]
    there = [waves * _ramp(*shift) for shift in shifts]
    fits = [sum(_heard(each, rings)) for each in there]
    best = int(np.argmax(fits))
    return fits[best], there[best], moved(matrix, 0, 0, shifts[best])


def _heard(waves: Waves, rings: Rings) -> tuple[float, float]:
    """How surely known waves are there, and that signs agree, in standard deviations of noise.

    The outer ring may have been lost, so it is asked together with the inner one and left out.
    """
    best, total, known, chips = (-np.inf, -np.inf), 0.0, 0, 0
    bits = np.zeros(CODED, np.float32)
    for ring in rings:
        total += float(np.vdot(ring.phases, waves[ring.known]).real)
        known += len(ring.known)
        bits += said(waves, ring)
        chips += len(ring.signs)
        # each part of a whitened wave has variance 1/2
        energy = float(np.vdot(bits, bits)) / (chips / CODED / 2) - CODED
        best = max(best, (total / (known / 2) ** 0.5, energy / (2 * CODED) ** 0.5), key=sum)
    return best


def _waves(part: NDArray[np.uint8], matrix: Matrix) -> Waves:
    waves = spectrum(*cut(part, matrix))
    return np.asarray(waves * loudness(waves))


def _shifted(waves: Waves, rings: Rings, reach: int) -> tuple[float, tuple[int, int]]:
    """How surely the known waves are there, and by which shift (x, y) they come into place."""
    lags = np.arange(-reach, reach + 1)
    surface = np.zeros((len(lags), len(lags)), np.float32)
    best, count = (-np.inf, (0, 0)), 0
    for ring in rings:
        found = np.zeros(SIDE * WIDTH, np.complex64)
        found[ring.known] = waves[ring.known] * ring.phases.conj()
        surface += np.fft.irfft2(found.reshape(SIDE, WIDTH))[np.ix_(lags, lags)]
        count += len(ring.known)
        row, column = divmod(int(surface.argmax()), len(lags))
        z = float(surface[row, column]) * SIDE * SIDE / (2 * count) ** 0.5
        best = max(best, (z, (reach - column, reach - row)))
    return best


@lru_cache(maxsize=256)
def _ramp(x: float, y: float) -> Waves:
    """What waves are multiplied by when the content of a square moves by (x, y) samples."""
    rows = np.exp(-2j * np.pi * y * np.fft.fftfreq(SIDE))[:, None]
    ramp = rows * np.exp(-2j * np.pi * x * np.arange(WIDTH) / SIDE)
    return np.asarray(ramp, np.complex64).ravel()


def _grid(scale: int, angle: int, step: float) -> Iterator[tuple[float, float]]:
    for a, b in product(range(-scale, scale + 1), range(-angle, angle + 1)):
        yield a * step, b * step
