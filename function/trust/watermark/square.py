"""The square of samples in which a mark lives, and what is done to them before waves count.

Writer and reader do the same: cut out the square, take away what is smooth, divide by how much
there is around (so that an eye does not outshout the skin), and fade out towards the edge.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import geometry
from function.trust.watermark.carriers import BANDS, SIDE, band_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Levels = NDArray[np.uint8]
    Matrix = NDArray[np.float64]
    Waves = NDArray[np.complex64]

_TEMPLATE = np.array([[0.326, 0.324], [0.674, 0.324], [0.5, 0.523], [0.355, 0.727], [0.645, 0.727]])
"""Where the five points belong in the unit square: about where ArcFace has them, but each side the
mirror image of the other, so that the square of a mirrored photo is the mirrored square."""
_SMOOTH = _AROUND = 7
"""Side of the square, in samples, over which is averaged: what is smooth, and how much there is."""
_FLOOR = 1.0
"""Levels that are added to how much there is, so that noise in flat areas is not blown up."""
_CLIP = 2.0
_MARGIN = 0.3
"""How much is kept around a square, in its sides, as its place is not yet sure."""


def placed(five: Floats) -> Matrix:
    """The similarity that takes an image to a face's square; float64 [2, 3].

    Args:
        five: float32 [5, 2], see `Face.five`.
    """
    return geometry.similarity(five, _TEMPLATE * SIDE)


def moved(
    matrix: Matrix, scale: float, angle: float, shift: tuple[float, float] = (0, 0)
) -> Matrix:
    """The same square, enlarged by `1 + scale` and turned around its middle, then shifted.

    Args:
        matrix: float64 [2, 3], image to square.
        scale: by how much more the image is enlarged.
        angle: by how much more it is turned, in radians.
        shift: (x, y), by how many samples its content is moved.
    """
    middle = (SIDE - 1) / 2
    turn = (1 + scale) * np.exp(1j * angle)
    linear = np.array([[turn.real, -turn.imag], [turn.imag, turn.real]])
    offset = linear @ (matrix[:, 2] - middle) + middle + np.asarray(shift)
    return np.column_stack([linear @ matrix[:, :2], offset])


def luma(pixels: Levels) -> Levels:
    """What files and clips keep best: uint8 [H, W] of uint8 [H, W, 3] RGB."""
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8)


def part_around(gray: Levels, matrix: Matrix) -> tuple[Levels, Matrix]:
    """The part of an image around a square, without what is too fine for its samples.

    Args:
        gray: uint8 [H, W].
        matrix: float64 [2, 3], image to square.

    Returns:
        uint8 [h, w], and float64 [2, 3], part to square.
    """
    low, high = -_MARGIN * SIDE, (1 + _MARGIN) * SIDE
    square = np.array([[low, low], [high, low], [low, high], [high, high]])
    seen = geometry.apply(geometry.invert(matrix), square)
    limit = np.array(gray.shape[::-1])
    left, top = np.clip(np.floor(seen.min(0)), 0, limit - 1).astype(int)
    right, bottom = np.clip(np.ceil(seen.max(0)), (left + 1, top + 1), limit).astype(int)
    coarser = 1 / float(np.hypot(*matrix[0, :2]))
    part, factor = geometry.halve(gray[top:bottom, left:right], coarser)
    if (coarser := coarser / factor) > 1.2:
        part = np.asarray(cv2.GaussianBlur(part, (0, 0), 0.4 * (coarser**2 - 1) ** 0.5), np.uint8)
    shift = (factor - 1) / 2 + np.array([left, top])
    linear = matrix[:, :2]
    return part, np.column_stack([linear * factor, linear @ shift + matrix[:, 2]])


def cut(part: Levels, matrix: Matrix) -> tuple[Floats, Floats]:
    """The samples of a square, and how much each of them counts.

    Args:
        part: uint8 [h, w], see `part_around`.
        matrix: float64 [2, 3], part to square.

    Returns:
        float32 [128, 128] levels, and float32 [128, 128] from 0 to 1: the window, without what
        lies outside of the image.
    """
    size = (SIDE, SIDE)
    samples = cv2.warpAffine(part, matrix, size, borderMode=cv2.BORDER_REPLICATE)
    height, width = part.shape
    square = np.array([[0, 0], [SIDE, 0], [0, SIDE], [SIDE, SIDE]])
    corners = geometry.apply(geometry.invert(matrix), square)
    weights = window()
    if not ((corners >= 0).all() and (corners <= (width - 1, height - 1)).all()):
        # What is outside repeats the border, and would be stripes.
        mask = np.zeros(size, np.float32)
        edge = np.array([(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)])
        cv2.fillConvexPoly(mask, np.rint(geometry.apply(matrix, edge)).astype(np.int32), 1.0)
        mask = cv2.erode(mask, np.ones((5, 5), np.uint8), borderType=cv2.BORDER_REPLICATE)
        weights = weights * cv2.blur(mask, (5, 5))
    return samples.astype(np.float32), np.asarray(weights, np.float32)


def flattened(samples: Floats) -> tuple[Floats, Floats]:
    """Samples without what is smooth, the fainter the more there is around each of them.

    Divided by how much there is, limited, and divided by the square root of it once more: what is
    around is the noise in which a mark has to be heard, so that quiet places count more.

    Args:
        samples: float32 [h, w] levels.

    Returns:
        float32 [h, w]; and float32 [h, w], how much there is, in levels.
    """
    fine = samples - cv2.blur(samples, (_SMOOTH, _SMOOTH))
    # Running sums may end a little below zero.
    around = np.sqrt(np.maximum(cv2.blur(fine * fine, (_AROUND, _AROUND)), 0))
    fine /= around + np.float32(_FLOOR)
    np.clip(fine, -_CLIP, _CLIP, out=fine)
    fine /= np.sqrt(around + np.float32(_FLOOR))
    return fine, np.asarray(around, np.float32)


def spectrum(samples: Floats, weights: Floats) -> Waves:
    """The waves of a square: complex64 [128 · 65], the half spectrum, flat."""
    return half_spectrum(flattened(samples)[0] * weights)


def half_spectrum(square: Floats) -> Waves:
    """The waves of float32 [128, 128]: complex64 [128 · 65]."""
    return np.asarray(np.fft.rfft2(square), np.complex64).ravel()


def loudness(waves: Waves) -> Floats:
    """One over the root mean square of each wave's band, 0 outside of all; float32 [128 · 65].

    Waves times this are whitened: real and imaginary part of each have variance 1/2.
    """
    band = band_of()
    power = np.bincount(band, waves.real**2 + waves.imag**2, BANDS + 1)
    factors = 1 / np.sqrt(power / np.bincount(band) + 1e-9)
    factors[BANDS] = 0
    return np.asarray(factors[band], np.float32)


@lru_cache(maxsize=1)
def window() -> Floats:
    """1 in the middle of the square, 0 at its edge: float32 [128, 128]."""
    x = np.abs(np.linspace(-1, 1, SIDE, dtype=np.float32)) ** 2.5
    edge = np.clip((1 - (x[:, None] + x)) / 0.35, 0, 1)
    return np.asarray(edge * edge * (3 - 2 * edge), np.float32)
