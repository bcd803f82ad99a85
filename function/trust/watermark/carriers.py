"""Which waves of a square carry which bit: a secret that a key unfolds into.

A mark is a square of 128 samples that is made of waves: those that go round 16 to 52 times in the
square. Two rings of them carry all bits: the inner one for what is shrunk later, the outer one for
large faces, in which slower waves would be seen. Some waves are known to the reader, who finds the
place and weighs the rest by them; each other carries a sign in its real and in its imaginary part.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from function.trust.watermark.code import CODED

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIDE = 128
"""Samples of the square."""
WIDTH = SIDE // 2 + 1
"""Columns of the half of its spectrum that says all, as `rfft2` has it."""
RINGS = ((16, 34, 9), (34, 52, 16))
"""From and to (waves in the square), and how many signs carry each coded bit."""
BANDS = 6
"""Parts of the rings, from inside, that are weighed separately."""


@dataclass(frozen=True, slots=True)
class Ring:
    """The waves of one ring, under one key. A place is an index into the flat half spectrum.

    Attributes:
        known: int [k], places of the waves that the reader knows.
        phases: complex64 [k], of absolute value 1: what they are.
        places: int [n], places of the waves that carry bits.
        signs: float32 [2n]; those of the real parts, then of the imaginary parts. Number i is for
            the coded bit i % 288.
    """

    known: NDArray[np.intp]
    phases: NDArray[np.complex64]
    places: NDArray[np.intp]
    signs: NDArray[np.float32]


@lru_cache(maxsize=64)
def rings(secret: bytes, use: str) -> tuple[Ring, ...]:
    """Unfold a key, from the inner ring to the outer; the same everywhere, as SHAKE-256 is.

    Args:
        secret: of the key.
        use: what for: marks of different uses do not disturb one another.
    """
    return tuple(_ring(secret, use, number) for number in range(len(RINGS)))


def _ring(secret: bytes, use: str, number: int) -> Ring:
    low, high, repeats = RINGS[number]
    radius = _radius()
    inside = (radius >= low) & (radius < high)
    inside[:, 0] = False  # that column is its own mirror image
    places = np.flatnonzero(inside)
    count, signs = len(places), repeats * CODED
    stream = hashlib.shake_256(f"ember watermark, {use}, ring {number}: ".encode() + secret)
    random = np.frombuffer(stream.digest(9 * count + signs), np.uint8)
    order = np.argsort(random[: 8 * count].view("<u8"), kind="stable")
    known = count - signs // 2
    phases = np.exp(0.25j * np.pi * (random[8 * count :][:known] % 8))
    return Ring(
        places[order[:known]],
        phases.astype(np.complex64),
        places[order[known:]],
        np.where(random[9 * count :] & 1, np.float32(1), np.float32(-1)),
    )


@lru_cache(maxsize=1)
def band_of() -> NDArray[np.intp]:
    """The band of each place in the flat half spectrum, from 0; 6 for what is in none."""
    low, high = RINGS[0][0], RINGS[-1][1]
    band = np.floor((_radius() - low) * (BANDS / (high - low))).astype(np.intp)
    band[(band < 0) | (band >= BANDS)] = BANDS
    return band.ravel()


def _radius() -> NDArray[np.float64]:
    rows = np.fft.fftfreq(SIDE, 1 / SIDE)[:, None]
    return np.asarray(np.hypot(rows, np.arange(WIDTH)))
