"""How the picture of a face moves from frame to frame, ten times finer than landmarks tell.

A landmark model places the same face anew in every frame, some pixels of a thousand off. What its
pixels show moves as the camera and the head do: points carried along with them do not tremble.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import geometry

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIDE = 128
_MARGIN = 1.2
"""Side of what is looked at, in faces."""
_STEP, _RADIUS = 6, 0.4
"""Distance of the places that are followed, in pixels; how far from the middle, in sides."""
_WINDOW, _LEVELS = (15, 15), 2
_NEAR = 0.6
"""Pixels by which a place that moves with the face may miss."""
_LEAST = 0.4
"""Share of the places that must move together, if it is the face that moves."""


def look(pixels: NDArray[np.uint8], points: NDArray[np.float32]) -> NDArray[np.uint8]:
    """What the next frame is compared with: the square around a face, uint8 [128, 128] luminance.

    Args:
        pixels: uint8 [H, W, 3] RGB.
        points: float32 [n, 2 or 3], of the face, in pixels.
    """
    chip = geometry.crop(pixels, _square(points), (_SIDE, _SIDE), cv2.BORDER_REPLICATE)
    return np.asarray(cv2.cvtColor(chip, cv2.COLOR_RGB2GRAY), np.uint8)


def carried(
    before: NDArray[np.uint8], pixels: NDArray[np.uint8], points: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Where points go with what the picture shows of the face: turned, scaled and shifted.

    Optical flow (Lucas and Kanade 1981, in pyramids by Bouguet 2001) of a grid of places, most of
    which must agree (RANSAC), so that neither a mouth that speaks nor a hand counts.

    Args:
        before: the `look` of the last frame around these points.
        pixels: uint8 [H, W, 3] RGB, the next frame.
        points: float32 [n, 2 or 3].

    Returns:
        The same, moved; where nothing moves together, as they are.
    """
    at = _places()
    after = look(pixels, points)
    to, seen, _ = cv2.calcOpticalFlowPyrLK(
        before, after, at, at.copy(), winSize=_WINDOW, maxLevel=_LEVELS
    )
    ok = seen[:, 0] > 0
    if ok.sum() < _LEAST * len(at):
        return points
    motion, together = cv2.estimateAffinePartial2D(at[ok], to[ok], ransacReprojThreshold=_NEAR)
    if motion is None or together.sum() < _LEAST * len(at):
        return points
    square = _square(points)
    moved = points.copy()
    moved[:, :2] = geometry.apply(
        geometry.invert(square), geometry.apply(motion, geometry.apply(square, points[:, :2]))
    )
    return moved


def _square(points: NDArray[np.float32]) -> NDArray[np.float64]:
    """The matrix [2, 3] from the picture to the square around points."""
    low, high = points[:, :2].min(0).astype(np.float64), points[:, :2].max(0).astype(np.float64)
    scale = _SIDE / (_MARGIN * max(float((high - low).max()), 1.0))
    return np.column_stack([scale * np.eye(2), _SIDE / 2 - scale * (low + high) / 2])


def _places() -> NDArray[np.float32]:
    """The places that are followed: a grid inside of a circle, float32 [n, 2]."""
    y, x = np.mgrid[_STEP:_SIDE:_STEP, _STEP:_SIDE:_STEP]
    inside = np.hypot(x - _SIDE / 2, y - _SIDE / 2) < _RADIUS * _SIDE
    return np.stack([x[inside], y[inside]], 1).astype(np.float32)
