"""Detectors that answer for every cell of three grids: SCRFD and RetinaFace, and YuNet.

An output is recognised by its shape, as exporters order and name them as they like: rows are
the cells of a grid, once for each anchor; columns are a score, the box, or five points. All views
are squares of 640, the size of graphs that take no other, so that there is one shape to
warm and views of several photos can share a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from function.faces.align import planes
from function.faces.detect import SIDE, best, square

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.detect import View
    from function.faces.face import Detection
    from function.runtime.engine import Engine

    Rows = NDArray[np.float32]

_STRIDES = (8, 16, 32)
_SCORE, _BOX, _POINTS = 1, 4, 10
_OVERLAP = 0.4


class Anchored:
    """SCRFD and RetinaFace as InsightFace exports them: two anchors in each cell.

    Args:
        engine: runs float32 [N, 3, 640, 640], RGB from -1 to 1.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def detect(
        self, pixels: NDArray[np.uint8], view: View, threshold: float = 0.5
    ) -> list[Detection]:
        """Faces in one view of an image, best score first, overlaps removed."""
        outputs = self._engine.run(planes(square(pixels, view), 1 / 128, -127.5 / 128))
        boxes, points, scores = [], [], []
        for stride, (score,), box, five in _grids(outputs, anchors=2):
            keep = np.flatnonzero(score[:, 0] >= threshold)
            center = np.repeat(_cells(stride), 2, 0)[keep]
            ends = box[keep] * stride
            boxes.append(np.concatenate([center - ends[:, :2], center + ends[:, 2:]], 1))
            points.append(center[:, None] + five[keep].reshape(-1, 5, 2) * stride)
            scores.append(score[keep, 0])
        return _found(boxes, points, scores, view)


class YuNet:
    """OpenCV's YuNet: one anchor in each cell, whose two scores are multiplied.

    Args:
        engine: runs float32 [N, 3, 640, 640], BGR 0–255.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def detect(
        self, pixels: NDArray[np.uint8], view: View, threshold: float = 0.5
    ) -> list[Detection]:
        """Faces in one view of an image, best score first, overlaps removed."""
        outputs = self._engine.run(planes(square(pixels, view)[..., ::-1], 1.0, 0.0))
        boxes, points, scores = [], [], []
        for stride, (one, other), box, five in _grids(outputs, anchors=1):
            both = one[:, 0] * other[:, 0]
            keep = np.flatnonzero(both >= threshold)
            corner = _cells(stride)[keep]
            center = corner + box[keep, :2] * stride
            half = np.exp(box[keep, 2:]) * (stride / 2)
            boxes.append(np.concatenate([center - half, center + half], 1))
            points.append(corner[:, None] + five[keep].reshape(-1, 5, 2) * stride)
            scores.append(both[keep])
        return _found(boxes, points, scores, view)


def _cells(stride: int) -> NDArray[np.float32]:
    """The upper left corners of all cells, float32 [n, 2] (x, y), row by row."""
    side = SIDE // stride
    y, x = np.divmod(np.arange(side * side, dtype=np.int32), side)
    return np.stack([x, y], 1).astype(np.float32) * stride


def _grids(outputs: Sequence[Rows], anchors: int) -> list[tuple[int, list[Rows], Rows, Rows]]:
    """Stride, scores [n, 1], boxes [n, 4] and points [n, 10] of each grid.

    Raises:
        ValueError: the graph is none of such a detector with points.
    """
    by_shape: dict[tuple[int, ...], list[Rows]] = {}
    for output in outputs:
        by_shape.setdefault(output.shape[1:], []).append(output[0])
    grids = []
    for stride in _STRIDES:
        rows = anchors * (SIDE // stride) ** 2
        parts = [by_shape.get((rows, columns), []) for columns in (_SCORE, _BOX, _POINTS)]
        if [len(part) for part in parts] != [3 - anchors, 1, 1]:
            raise ValueError(
                f"the detector gives {[output.shape for output in outputs]}, which has not the"
                f" scores, boxes and five points of {rows} cells"
            )
        grids.append((stride, parts[0], parts[1][0], parts[2][0]))
    return grids


def _found(
    boxes: list[Rows], points: list[Rows], scores: list[Rows], view: View
) -> list[Detection]:
    return best(
        np.concatenate(boxes), np.concatenate(points), np.concatenate(scores), view, _OVERLAP
    )
