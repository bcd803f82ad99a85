"""Making a mark for what is there: stronger for bits against which the picture speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from function.trust.watermark import code
from function.trust.watermark.carriers import SIDE, WIDTH
from function.trust.watermark.code import CODED
from function.trust.watermark.reading import said
from function.trust.watermark.square import loudness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.trust.watermark.carriers import Ring

    Floats = NDArray[np.float32]
    Waves = NDArray[np.complex64]

_KNOWN = 1.5
"""How much stronger the waves are that the reader knows."""
_MOST = 3.0
"""How much stronger than the average one bit may be made."""
_LEVELLED = 0.35
"""How much of what differs between bits is made up for; the rest protects against what comes."""


class Host(Protocol):
    """What is marked."""

    def waves(self, added: Floats | None) -> Waves:
        """What a reader would find: complex64 [128 · 65].

        Args:
            added: float32 [128, 128] levels that are added before; None for nothing.
        """
        ...

    def later(self, added: Floats) -> Waves:
        """The same after the picture went an ordinary way, shrunk and compressed."""
        ...


@dataclass(frozen=True, slots=True)
class Strength:
    """How strong a mark is, in levels (root mean square over the square).

    Attributes:
        usual: with which it is tried.
        least, most: what it may become, so that it is heard as well as it should be.
        wanted: how well a coded bit should be heard later, in deviations of all bits.
    """

    usual: float
    least: float
    most: float
    wanted: float


def mark(
    host: Host,
    shape: Floats,
    rings: Sequence[tuple[Ring, float]],
    payload: int,
    strength: Strength,
    *,
    steady: bool,
) -> Floats:
    """What is to be added to a square of samples: float32 [128, 128] levels.

    A mark is tried. How well a bit is heard then is about h + s, where h is what the picture says
    by itself: from how both are later it follows how strong the mark has to be, and what speaks
    against single bits is partly made up for.

    Args:
        host: what is marked.
        shape: float32 [128, 128], how strong the mark may be where.
        rings: those of the key that are used, and what share of the energy each gets.
        payload: 48 bits.
        strength: of the mark.
        steady: choose free bits without a look at the picture, so that they are the same in every
            frame of a clip, and frames can be added up.
    """
    waves = host.waves(None)
    factors = loudness(waves)
    alone = np.stack([said(waves * factors, ring) for ring, _ in rings])
    shares = np.array([share for _, share in rings], np.float32)
    coded = code.encode(payload, None if steady else shares @ alone)
    added = _added(rings, np.ones_like(alone), coded, factors, shape) * np.float32(strength.usual)
    waves = host.waves(added) * factors
    heard = np.stack([said(waves, ring) for ring, _ in rings]) * coded
    slopes = np.maximum((heard - alone * coded).mean(1), 1e-3)
    later = said(host.later(added) * factors, rings[0][0]) * coded
    free = float((alone[0] * coded).mean())
    missing = strength.wanted * float(later.std()) - free
    stronger = missing / max(float(later.mean()) - free, 1e-3)
    level = float(np.clip(strength.usual * stronger, strength.least, strength.most))
    against = heard - slopes[:, None]
    slopes *= level / strength.usual
    levelled = np.stack([_levelled(*each) for each in zip(against, slopes, strict=True)])
    gains = _LEVELLED * levelled + np.float32(1 - _LEVELLED)
    return _added(rings, gains, coded, factors, shape) * np.float32(level)


def _added(
    rings: Sequence[tuple[Ring, float]],
    gains: Floats,
    coded: Floats,
    factors: Floats,
    shape: Floats,
) -> Floats:
    """The mark whose bits have these gains, with a root mean square of 1.

    Waves of quiet bands are made stronger: there the same can be heard for less.
    """
    waves = np.zeros(SIDE * WIDTH, np.complex64)
    for (ring, share), gain in zip(rings, gains, strict=True):
        count = len(ring.places)
        values = np.resize(gain * coded, len(ring.signs)) * ring.signs
        usual = float(np.sqrt(np.mean(factors[ring.places] ** 2)))
        quiet = factors * np.float32((share / count) ** 0.5 / max(usual, 1e-9))
        waves[ring.places] = (values[:count] + 1j * values[count:]) * quiet[ring.places]
        waves[ring.known] = ring.phases * quiet[ring.known] * np.float32(2**0.5 * _KNOWN)
    added = np.fft.irfft2(waves.reshape(SIDE, WIDTH)) * shape
    power = float(np.vdot(added, added)) / added.size
    return np.asarray(added * np.float32(max(power, 1e-12) ** -0.5))


def _levelled(against: Floats, slope: float) -> Floats:
    """Gains, of mean square 1 at most, by which all bits are heard as equally as may be."""
    low, high = float(against.min()), float(against.max()) + _MOST * slope
    gains = np.zeros_like(against)
    for _ in range(16):
        level = (low + high) / 2
        gains = np.clip((level - against) / np.float32(slope), 0, _MOST)
        low, high = (low, level) if float(np.vdot(gains, gains)) > CODED else (level, high)
    return gains
