"""Marks in faces: written into the square of each, and found again wherever the face is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import geometry
from function.trust.watermark import reading
from function.trust.watermark.carriers import SIDE, rings
from function.trust.watermark.reading import Reach
from function.trust.watermark.square import (
    cut,
    flattened,
    luma,
    part_around,
    placed,
    spectrum,
)
from function.trust.watermark.writing import Strength, mark

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.trust.watermark.keys import WatermarkKey
    from function.trust.watermark.reading import Found

    Floats = NDArray[np.float32]
    Pixels = NDArray[np.uint8]

USE = "face"
NEAR, FAR = Reach(2, 2, 5, 0.0125, sure=4.3), Reach(5, 3, 8, 0.025, sure=5.0)
"""How far from a face's points its mark is looked for: at first, and if that finds none (in photos
that end close to a face, its points may jump by a tenth)."""

_SIZES = np.log2([128.0, 192, 256, 512])
_INNER = 1, 1, 0.6, 0.4
"""The inner ring's share of the energy, by the size of the face."""
_USUAL = 42.6, 42.4, 42.7, 45
"""Decibels below the full range, over the square."""
_WANTED = 0.95, 1, 1, 0.72
_LEAST, _MOST = 0.72, 1.3
"""How much weaker and stronger than usual a mark may be made."""
_EVEN = 8.0
"""Levels that are added to how much there is, so that no place gets much more than others."""
_HALF, _SMALLEST, _QUALITY = 0.5, 96, 80
"""What a mark should survive: half the size, but not less than this, and this quality as JPEG."""


def size_of(face: Face) -> float:
    """The longer side of a face's detection, in pixels."""
    return max(face.detection.box.width, face.detection.box.height)


def write(canvas: Pixels, face: Face, key: WatermarkKey, payload: int, *, steady: bool) -> None:
    """Mark one face; nothing outside its box changes, and what is gray stays gray.

    Args:
        canvas: uint8 [H, W, 3] RGB, changed in place.
        face: where it is.
        key: the key.
        payload: 48 bits.
        steady: as `writing.mark` has it.
    """
    left, top, right, bottom = (
        int(side) for side in (face.box.left, face.box.top, face.box.right, face.box.bottom)
    )
    pixels = canvas[top:bottom, left:right]
    corner = np.array([left, top], np.float32)
    matrix = placed(face.five - corner)
    host = _FaceHost(luma(pixels), matrix)
    shape = host.weights / (flattened(host.samples)[1] + np.float32(_EVEN))
    if face.outline is not None:
        shape *= _inside(geometry.apply(matrix, face.outline - corner))
    size = float(np.log2(size_of(face)))
    share = float(np.interp(size, _SIZES, _INNER))
    inner, outer = rings(key.secret, USE)
    used = [(inner, share), (outer, 1 - share)] if share < 1 else [(inner, 1.0)]
    usual = float(255 / 10 ** (np.interp(size, _SIZES, _USUAL) / 20))
    wanted = float(np.interp(size, _SIZES, _WANTED))
    strength = Strength(usual, usual * _LEAST, usual * _MOST, wanted)
    added = mark(host, shape, used, payload, strength, steady=steady)
    add(pixels, added, geometry.invert(matrix))


class _FaceHost:
    """The square of a face.

    Args:
        gray: uint8 [h, w].
        matrix: float64 [2, 3], to the square.

    Attributes:
        samples, weights: see `square.cut`.
    """

    def __init__(self, gray: NDArray[np.uint8], matrix: NDArray[np.float64]) -> None:
        self.samples, self.weights = cut(*part_around(gray, matrix))
        side = SIDE / float(np.hypot(*matrix[0, :2]))
        self._later = round(min(max(side * _HALF, _SMALLEST), SIDE))

    def waves(self, added: Floats | None) -> NDArray[np.complex64]:
        """See `Host`."""
        samples = self.samples if added is None else self.samples + added
        return spectrum(samples, self.weights)

    def later(self, added: Floats) -> NDArray[np.complex64]:
        """See `Host`."""
        size = (self._later, self._later)
        small = cv2.resize(self.samples + added, size, interpolation=cv2.INTER_AREA)
        levels = np.clip(small, 0, 255).astype(np.uint8)
        file = cv2.imencode(".jpg", levels, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1]
        seen = cv2.resize(cv2.imdecode(file, cv2.IMREAD_GRAYSCALE), (SIDE, SIDE))
        return spectrum(seen.astype(np.float32), self.weights)


def add(pixels: Pixels, added: Floats, matrix: NDArray[np.float64]) -> None:
    """Add a square to pixels, the same to red, green and blue.

    Args:
        pixels: uint8 [h, w, 3], changed in place.
        added: float32 [128, 128] levels.
        matrix: float64 [2, 3], square to pixels.
    """
    size = pixels.shape[1], pixels.shape[0]
    levels = cv2.warpAffine(added, matrix, size, flags=cv2.INTER_CUBIC)
    whole = np.rint(levels, out=levels).astype(np.int16)
    pixels[:] = cv2.add(pixels, cv2.merge([whole, whole, whole]), dtype=cv2.CV_8U)


def find(gray: Pixels, five: Floats, key: WatermarkKey, reach: Reach) -> Found:
    """The best place for a mark near a face's points.

    Args:
        gray: uint8 [H, W].
        five: float32 [5, 2], see `Face.five`.
        key: the key.
        reach: how far from them is searched.
    """
    return reading.find(*part_around(gray, placed(five)), rings(key.secret, USE), reach)


def mirrored(gray: Pixels, five: Floats) -> tuple[Pixels, Floats]:
    """An image and a face's points, as a mirror would show them."""
    turned = five[[1, 0, 2, 4, 3]].copy()
    turned[:, 0] = gray.shape[1] - 1 - turned[:, 0]
    return np.ascontiguousarray(gray[:, ::-1]), turned


def _inside(outline: Floats) -> Floats:
    """1 inside of a face's outline, fading out around it: float32 [128, 128]."""
    mask = np.zeros((SIDE, SIDE), np.float32)
    hull = cv2.convexHull(outline)
    cv2.fillConvexPoly(mask, np.rint(hull).astype(np.int32), 1.0)
    mask = cv2.dilate(mask, np.ones((9, 9), np.uint8))
    return np.asarray(cv2.blur(mask, (9, 9)), np.float32)
