"""What one sees along the border of a swapped face: edges, steps of colour, another sharpness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]
    Mask = NDArray[np.bool_]

_CHANGED = 3  # levels
_WIDTH = 300.0  # pixels to which a face is brought before it is judged
_LINE = (-0.02, 0.08)  # from outside to inside of the border, in face widths: where a seam shows
_NEAR = 0.16  # face widths on both sides of the border
_INSIDE, _OUTSIDE = (0.05, 0.13), (0.0, 0.06)  # rings whose colours are compared
_STRONG = 95  # percent of the cells have less detail than what is compared
_SECTORS = 24
_LEAST = 12  # cells of a ring in one sector
_SKIN = 16.0  # ΔE from the face's median: more is hair, cloth, background


@dataclass(frozen=True, slots=True)
class Border:
    """Where a swap ends, on pictures brought to one size.

    Attributes:
        matrix: float64 [2, 3], from the picture to that size.
        size: (width, height).
        depth: float32 [h, w], face widths inside of the border; negative outside.
        angle: float32 [h, w] around the middle of the face, in sectors.
        face: bool [h, w], inside of the outline of the target's face.
    """

    matrix: NDArray[np.float64]
    size: tuple[int, int]
    depth: NDArray[np.float32]
    angle: NDArray[np.int32]
    face: Mask

    @classmethod
    def between(cls, target: Pixels, result: Pixels, mesh: NDArray[np.float32]) -> Self:
        """The border of what differs between two pictures.

        Args:
            target: uint8 [H, W, 3] RGB.
            result: the same size.
            mesh: float32 [468, 3] of the target's face.
        """
        points = mesh[:, :2]
        low, high = points.min(0), points.max(0)
        width = float(high[0] - low[0])
        scale = _WIDTH / width
        low, high = low - 0.4 * width, high + 0.4 * width
        size = tuple(int(side) for side in np.ceil((high - low) * scale))
        matrix = np.array([[scale, 0, -scale * low[0]], [0, scale, -scale * low[1]]])
        other = np.abs(result.astype(np.int16) - target).max(2) > _CHANGED
        changed = _resized(other.astype(np.uint8) * 255, matrix, size) > 127
        disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (13, 13))
        closed = cv2.morphologyEx(changed.astype(np.uint8), cv2.MORPH_CLOSE, disc)
        outlines, _ = cv2.findContours(closed, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        filled = np.zeros_like(closed)
        if outlines:
            cv2.drawContours(filled, [max(outlines, key=cv2.contourArea)], -1, 1, cv2.FILLED)
        inside = cv2.distanceTransform(filled, cv2.DIST_L2, 5)
        outside = cv2.distanceTransform(1 - filled, cv2.DIST_L2, 5)
        x, y = (points.mean(0) - low) * scale
        rows, columns = np.mgrid[: size[1], : size[0]]
        turn = np.arctan2(rows - y, columns - x) / (2 * np.pi) % 1
        hull = cv2.convexHull(((points - low) * scale).astype(np.int32))
        face = cv2.fillConvexPoly(np.zeros_like(closed), hull, 1) > 0
        depth = np.asarray((inside - outside) / _WIDTH, np.float32)
        return cls(matrix, (size[0], size[1]), depth, (turn * _SECTORS).astype(np.int32), face)

    def _lab(self, pixels: Pixels) -> NDArray[np.float32]:
        """Brought to size, in CIE Lab (L 0–100), float32 [h, w, 3]."""
        image = _resized(pixels, self.matrix, self.size).astype(np.float32) / 255
        return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2LAB), np.float32)

    def seam(self, target: Pixels, result: Pixels) -> float:
        """Gradient along the border that the target has not there, by the median one around."""
        was, now = (_gradient(self._lab(each)) for each in (target, result))
        line = (self.depth > _LINE[0]) & (self.depth < _LINE[1])
        near = np.abs(self.depth) < _NEAR
        if not line.any():
            return 0.0
        return float(np.maximum(now - was, 0)[line].mean() / max(float(np.median(was[near])), 0.1))

    def ring(self, target: Pixels, result: Pixels) -> float:
        """How much the step of colour across the border differs from the target's, ΔE.

        The mean over the sectors around the face in which the target has skin on both sides.
        """
        was, now = (cv2.GaussianBlur(self._lab(each), (0, 0), 2.0) for each in (target, result))
        skin = np.linalg.norm(was - np.median(was[self.face], 0), axis=2) < _SKIN
        steps = []
        rings = [
            (self.depth > low) & (self.depth < high) & skin
            for low, high in (_INSIDE, (-_OUTSIDE[1], -_OUTSIDE[0]))
        ]
        for sector in range(_SECTORS):
            inner, outer = (ring & (self.angle == sector) for ring in rings)
            if min(inner.sum(), outer.sum()) < _LEAST:
                continue
            before, after = (each[inner].mean(0) - each[outer].mean(0) for each in (was, now))
            steps.append(float(np.linalg.norm(after - before)))
        return float(np.mean(steps)) if steps else 0.0

    def sharpness(self, target: Pixels, result: Pixels) -> float:
        """The strongest detail inside over that around, by the same of the target.

        What is around did not change, so this is what the face has over what it had. Only the
        strongest counts (eyes, lips, brows): every face has that, whatever its skin.
        """
        both = (_detail(self._lab(each)[..., 0])[self._middle] for each in (target, result))
        was, now = (float(np.percentile(each, _STRONG)) for each in both)
        return now / max(was, 0.02)

    def error(self, right: Pixels, result: Pixels) -> float:
        """How far the face is from the picture that is right, mean ΔE."""
        apart = self._lab(right) - self._lab(result)
        return float(np.linalg.norm(apart, axis=2)[self.face].mean())

    @property
    def _middle(self) -> Mask:
        """Well inside of the border and of the face."""
        middle = self.face & (self.depth > _LINE[1])
        return middle if middle.any() else self.face


def _resized(pixels: Pixels, matrix: NDArray[np.float64], size: tuple[int, ...]) -> Pixels:
    from function.faces import geometry

    return geometry.crop(pixels, matrix, (size[0], size[1]), cv2.BORDER_REPLICATE)


def _gradient(lab: NDArray[np.float32]) -> NDArray[np.float32]:
    """Length of the gradient of a smoothed picture in ΔE per pixel, float32 [h, w]."""
    smooth = cv2.GaussianBlur(lab, (0, 0), 2.0)
    across, down = (cv2.Sobel(smooth, cv2.CV_32F, *each, ksize=3, scale=1 / 8) for each in _AXES)
    return np.asarray(np.sqrt((across**2 + down**2).sum(2)), np.float32)


def _detail(lightness: NDArray[np.float32]) -> NDArray[np.float32]:
    """How far each pixel is from the mean around it, float32 [h, w]."""
    return np.asarray(np.abs(lightness - cv2.GaussianBlur(lightness, (0, 0), 1.5)), np.float32)


_AXES = ((1, 0), (0, 1))
