"""Which waves carry what."""

from __future__ import annotations

import numpy as np

from function.trust.watermark.carriers import RINGS, SIDE, WIDTH, rings
from function.trust.watermark.code import CODED

ONE, OTHER = b"one secret of 16", b"other secret, 16"


def square(places, values) -> np.ndarray:
    waves = np.zeros(SIDE * WIDTH, np.complex64)
    waves[places] = values
    return np.fft.irfft2(waves.reshape(SIDE, WIDTH))


def test_every_coded_bit_has_as_many_signs():
    for ring, (_, _, repeats) in zip(rings(ONE, "face"), RINGS, strict=True):
        assert len(ring.signs) == 2 * len(ring.places) == repeats * CODED
        assert set(ring.signs.tolist()) == {-1.0, 1.0}


def test_no_wave_is_used_twice():
    places = [each for ring in rings(ONE, "face") for each in (*ring.places, *ring.known)]
    assert len(set(places)) == len(places)


def test_carriers_of_different_bits_and_the_known_waves_are_orthogonal():
    ring = rings(ONE, "face")[0]
    count = len(ring.places)
    chips = []
    for bit in (0, 1, CODED - 1):
        of_bit = np.where(np.arange(2 * count) % CODED == bit, ring.signs, 0)
        chips.append(square(ring.places, of_bit[:count] + 1j * of_bit[count:]))
    every = np.array([*chips, square(ring.known, ring.phases)]).reshape(4, -1)
    products = every @ every.T
    lengths = np.sqrt(np.diag(products))
    assert np.allclose(products / np.outer(lengths, lengths), np.eye(4), atol=1e-5)


def test_a_key_unfolds_to_the_same_waves_everywhere():
    """These numbers must never change, or marks that were made could no longer be read."""
    ring = rings(ONE, "face")[0]
    assert ring.known[:3].tolist() == [7093, 6971, 7352]
    assert ring.signs[:8].tolist() == [-1, 1, 1, 1, 1, -1, 1, 1]


def test_keys_and_uses_have_hardly_anything_in_common():
    first = rings(ONE, "face")[0]
    for other in (rings(OTHER, "face")[0], rings(ONE, "picture")[0]):
        assert abs(float(np.mean(first.signs * other.signs))) < 0.1
        assert len(set(first.known) & set(other.known)) < len(first.known) / 3
