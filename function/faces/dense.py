"""Flat landmarks: 106 points of InsightFace, 68 of the face alignment network (2dfan4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from function.faces import geometry
from function.faces.align import planes
from function.faces.exposure import lifted
from function.faces.face import Fitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.face import Detection
    from function.runtime.engine import Engine

_SIDE_106, _MARGIN = 192, 1.5
_SIDE_68, _FACE_68 = 256, 195.0  # of the crop, and of the detected box in it
_HEAT = 64  # side of a heat map
_SURE = 0.9  # mean of the heat of points that are sure
_LEAST = 0.5
"""Presence below which the detector's points are better."""
_EYES, _NOSE, _MOUTH = (slice(36, 42), slice(42, 48)), 30, [48, 54]


class Flat106:
    """InsightFace's `2d106det`, which says nothing about how sure it is.

    Args:
        engine: runs float32 [N, 3, 192, 192], RGB 0–255.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def fit(self, pixels: NDArray[np.uint8], detection: Detection) -> Fitted:
        """The points of one face; the five stay the detector's, as swappers expect them."""
        box = detection.box
        scale = _SIDE_106 / (max(box.width, box.height, 1.0) * _MARGIN)
        matrix = _around(detection, scale, _SIDE_106 / 2)
        chip = geometry.crop(pixels, matrix, (_SIDE_106, _SIDE_106))
        out = self._engine.run(planes(lifted(chip)[None], 1.0, 0.0))[0]
        points = (out.reshape(-1, 2)[-106:] + 1) * (_SIDE_106 / 2)
        outline = geometry.apply(geometry.invert(matrix), points)
        return Fitted(detection, detection.points, max(detection.score, _LEAST), outline=outline)


class Fan68:
    """2dfan4.

    Args:
        engine: runs float32 [N, 3, 256, 256], BGR 0–1.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def fit(self, pixels: NDArray[np.uint8], detection: Detection) -> Fitted:
        """The points of one face."""
        box = detection.box
        scale = _FACE_68 / max(box.width, box.height, 1.0)
        matrix = _around(detection, scale, _SIDE_68 / 2)
        chip = lifted(geometry.crop(pixels, matrix, (_SIDE_68, _SIDE_68)))
        outputs = self._engine.run(planes(chip[None, ..., ::-1], 1 / 255, 0.0))
        found = next(output for output in outputs if output.ndim == 3)[0]
        heat = next(output for output in outputs if output.ndim == 4)[0]
        presence = min(float(heat.max((1, 2)).mean()) / _SURE, 1.0)
        points = geometry.apply(geometry.invert(matrix), found[:, :2] * (_SIDE_68 / _HEAT))
        eyes = [points[eye].mean(0) for eye in _EYES]
        five = np.stack([*eyes, points[_NOSE], *points[_MOUTH]])
        if presence < _LEAST:
            five = detection.points
        return Fitted(detection, five, max(presence, _LEAST), outline=points)


def _around(detection: Detection, scale: float, middle: float) -> NDArray[np.float64]:
    """To a crop in whose middle the detected box is, turned by quarters until it is upright."""
    across = detection.points[1] - detection.points[0]
    quarters = round(float(np.arctan2(across[1], across[0])) / (np.pi / 2))
    cos, sin = (scale * each for each in ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters % 4])
    linear = np.array([[cos, sin], [-sin, cos]])
    return np.column_stack([linear, middle - linear @ np.array(detection.box.center)])
