"""The painted skin of a head that nobody has, made of noise and of the landmarks of its face."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tests.bench.quality.heads import Head

    Points = NDArray[np.floating]
    Colour = Sequence[float] | Points

TONES = [
    (244, 208, 180),
    (224, 172, 138),
    (190, 132, 94),
    (140, 90, 60),
    (92, 58, 42),
    (60, 38, 30),
]
"""Skin in sRGB, from very light to very dark."""
_SIDE = 768
# points of the face mesh
EYES = [
    [33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246],
    [263, 249, 390, 373, 374, 380, 381, 382, 362, 398, 384, 385, 386, 387, 388, 466],
]
_LIPS = [61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185]
_BROWS = [
    [70, 63, 105, 66, 107, 55, 65, 52, 53, 46],
    [300, 293, 334, 296, 336, 285, 295, 282, 283, 276],
]
_JAW = [234, 93, 132, 58, 172, 136, 150, 149, 176, 148, 152, 377, 400, 378, 379, 365, 397, 288, 361,
        323, 454, 425, 327, 2, 98, 205]  # fmt: skip
_FOREHEAD = [54, 103, 67, 109, 10, 338, 297, 332, 284]
_FOLDS = [[129, 203, 206, 92], [358, 423, 426, 322]]


def linear(colour: Colour) -> Points:
    """Linear light, 0–1, of an sRGB colour 0–255 (gamma 2.2)."""
    return np.asarray((np.asarray(colour) / 255.0) ** 2.2, np.float32)


class Skin:
    """The skin over a face as seen from the front, as linear colour.

    Args:
        face: float [468, 3], 1 wide.
        head: how it looks.
        rng: decides the noise.
    """

    def __init__(self, face: Points, head: Head, rng: np.random.Generator) -> None:
        self._face, self._head, self._rng = _cells(face[:, :2]), head, rng
        tone, hair = linear(TONES[head.tone]), linear(head.hair)
        spots = 0.10 * _noise(rng, (6, 6)) + 0.05 * _noise(rng, (40, 40))
        spots += 0.05 * _noise(rng, (250, 250))
        self._image = (tone * np.exp(spots)[..., None]).astype(np.float32)
        self._threads = _noise(rng, (20, 400)) + 0.5 * _noise(rng, (8, 120))
        for place, size, factor in (
            (50, 0.12, (1.06, 0.88, 0.88)),
            (280, 0.12, (1.06, 0.88, 0.88)),
            (4, 0.06, (1.06, 0.88, 0.88)),
            (230, 0.06, (0.9, 0.84, 0.84)),
            (450, 0.06, (0.9, 0.84, 0.84)),
        ):
            self._stain(place, size, factor)
        self._wrinkle()
        hairy = np.clip(0.7 + 0.5 * self._threads, 0, 1)
        if head.beard:
            self._mix(0.9 * hairy * self._area(self._face[_JAW], 10), 0.8 * hair)
        for brow in _BROWS:
            outline = cv2.convexHull(self._face[brow])[:, 0]
            self._mix(self._area(outline, 4) * np.clip(hairy.T, 0.3, 1), 0.7 * hair)
        red = (0.9, 0.28, 0.3) if head.paint else (0.8, 0.55, 0.52)
        self._mix(self._area(self._face[_LIPS], 2.5), tone * np.array(red))
        self._mouth()
        for eye in EYES:
            self._eye(self._face[eye])
        for corner in (98, 327):
            nostril = self._face[[2, corner]].mean(0)
            self._mix(0.85 * self._blob(nostril, (10, 5)), (0.02, 0.008, 0.006))

    def at(self, places: Points) -> Points:
        """The skin at places float [h, w, 2] of the face: float32 [h, w, 3]."""
        return _sampled(self._image, places)

    def strands(self, places: Points) -> Points:
        """Noise with a direction, 0–1, float [h, w]."""
        return np.clip(0.5 + 0.3 * _sampled(self._threads, places * 0.5), 0, 1)

    def _mix(self, mask: Points, colour: Colour) -> None:
        other = np.asarray(colour, np.float32)
        self._image += mask[..., None].astype(np.float32) * (other - self._image)

    def _stain(self, place: int, size: float, factor: Colour) -> None:
        """Change the colour softly around a point."""
        y, x = np.mgrid[:_SIDE, :_SIDE]
        middle = self._face[place]
        far = (x - middle[0]) ** 2 + (y - middle[1]) ** 2
        mask = np.exp(-far / (2 * (size * 0.6 * _SIDE) ** 2))[..., None].astype(np.float32)
        self._image *= 1 + mask * (np.asarray(factor, np.float32) - 1)

    def _blob(self, middle: Points, radii: tuple[float, float]) -> Points:
        """An ellipse."""
        y, x = np.mgrid[:_SIDE, :_SIDE]
        far = np.hypot((x - middle[0]) / radii[0], (y - middle[1]) / radii[1])
        return np.asarray(np.clip((1 - far) * min(radii) / 2, 0, 1))

    def _area(self, outline: Points, soft: float) -> Points:
        mask = np.zeros((_SIDE, _SIDE), np.float32)
        cv2.fillPoly(mask, [np.round(outline).astype(np.int32)], 1.0)
        return np.asarray(cv2.GaussianBlur(mask, (0, 0), soft))

    def _line(self, points: Points, width: int, soft: float) -> Points:
        mask = np.zeros((_SIDE, _SIDE), np.float32)
        cv2.polylines(mask, [np.round(points).astype(np.int32)], False, 1.0, width, cv2.LINE_AA)
        return np.asarray(cv2.GaussianBlur(mask, (0, 0), soft))

    def _wrinkle(self) -> None:
        """Folds: from the nose to the mouth, across the forehead, at the corners of the eyes."""
        face, age = self._face, self._head.age
        lines = [face[fold] for fold in _FOLDS]
        for row in (0.25, 0.45, 0.65):
            arch = face[_FOREHEAD] + row * (face[9] - face[10]) * [0.9, 1]
            lines.append(arch + self._rng.normal(size=2) * 2)
        long = np.linspace(10, 38, 4)[:, None]
        for corner, side in ((33, -1), (263, 1)):
            lines += [face[corner] + np.array([side, slope]) * long for slope in (-0.5, 0.0, 0.5)]
        for line in lines:
            self._image *= 1 - 0.55 * age * self._line(line, 2, 1.6)[..., None]
            self._image *= 1 + 0.2 * age * self._line(line + np.array([0, 4]), 2, 2.2)[..., None]

    def _mouth(self) -> None:
        """What is between the lips: dark, with the upper teeth when it is open."""
        lips = self._face[Topology.load().lips]
        self._mix(self._area(lips, 1.2), (0.05, 0.012, 0.012))
        if self._head.smile > 0.2:
            middle = (lips.min(0) + lips.max(0)) / 2
            upper = lips[lips[:, 1] <= lips[0, 1] + 1]
            lower = upper[::-1] * [0.9, 0] + [0.1 * middle[0], middle[1]]
            self._mix(self._area(np.concatenate([upper, lower]), 1.2), (0.62, 0.58, 0.5))

    def _eye(self, eye: Points) -> None:
        middle, wide = eye.mean(0), float(np.ptp(eye[:, 0]))
        if self._head.paint:
            lid = middle + (eye - middle) * [1.25, 2.0] - [0, 9]
            self._mix(0.6 * self._area(lid, 7), (0.08, 0.05, 0.14))
        inside = self._area(eye, 1.0)
        self._mix(inside, (0.62, 0.58, 0.55))
        for radius, colour in (
            (0.22, (0.06, 0.035, 0.02)),
            (0.20, (0.14, 0.08, 0.04)),
            (0.09, (0.005, 0.005, 0.005)),
        ):
            round_ = self._blob(middle - [0, 1.5], (radius * wide, radius * wide))
            self._mix(inside * round_, colour)
        self._mix(0.9 * self._blob(middle - [4, 7], (3, 3)), (0.9, 0.9, 0.9))
        self._mix(0.9 * self._line(eye[8:], 3, 1.0), (0.015, 0.01, 0.008))
        self._mix(0.35 * self._line(eye[:9], 2, 1.0), (0.05, 0.03, 0.02))
        self._mix(0.4 * self._line(eye[8:] - [0, 10], 2, 1.5), (0.05, 0.03, 0.02))


def _cells(places: Points) -> NDArray[np.float32]:
    """Places of the face as cells of the picture of the skin."""
    return np.asarray((places * 0.6 + 0.5) * _SIDE, np.float32)


def _sampled(image: Points, places: Points) -> Points:
    at = _cells(places)
    how = {"interpolation": cv2.INTER_LINEAR, "borderMode": cv2.BORDER_REFLECT}
    return np.asarray(cv2.remap(image.astype(np.float32), at[..., 0], at[..., 1], **how))


def _noise(rng: np.random.Generator, cells: tuple[int, int]) -> Points:
    """Smooth noise of deviation 1, with so many cells (rows, columns)."""
    wide = cv2.resize(rng.normal(size=cells), (_SIDE, _SIDE), interpolation=cv2.INTER_CUBIC)
    return np.asarray(wide / wide.std())
