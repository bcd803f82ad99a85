"""Where networks expect a face: templates of five points, and crops that have them there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from function.faces import geometry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.face import Face

    Template = NDArray[np.float64]

# (x, y) of the left eye, right eye, nose tip, left and right corner of the mouth in a unit square.
# The first two are InsightFace's points of 112 pixels; the third is centred in 128.
_POINTS = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655],
     [70.7299, 92.2041]]
)  # fmt: skip
ARCFACE_112: Template = _POINTS / 112
ARCFACE_128: Template = (_POINTS + np.array([8, 0])) / 128
ARCFACE_OLD: Template = np.array(
    [[0.35473214, 0.45658929], [0.64526786, 0.45658929], [0.50000000, 0.61154464],
     [0.37913393, 0.77687500], [0.62086607, 0.77687500]]
)  # fmt: skip
FFHQ: Template = np.array(
    [[0.37691676, 0.46864664], [0.62285697, 0.46912813], [0.50123859, 0.61331904],
     [0.39308822, 0.72541100], [0.61150205, 0.72490465]]
)  # fmt: skip
MTCNN: Template = np.array(
    [[0.36562865, 0.46733799], [0.63305391, 0.46585885], [0.50019127, 0.61942959],
     [0.39032951, 0.77598822], [0.61178945, 0.77476328]]
)  # fmt: skip


def matrix(five: NDArray[np.float32], template: Template, size: int) -> NDArray[np.float64]:
    """The similarity that takes a face to its place in a square crop; float64 [2, 3].

    Args:
        five: float32 [5, 2], see `Face.five`.
        template: where these belong.
        size: side of the crop in pixels.
    """
    return geometry.similarity(five, template * size)


def corners(five: NDArray[np.float32], template: Template) -> NDArray[np.float32]:
    """The corners of the crop in the image, float32 [4, 2], clockwise from the upper left one."""
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float64)
    return geometry.apply(geometry.invert(matrix(five, template, 1)), square)


def rounds(faces: Sequence[Face], template: Template) -> list[list[int]]:
    """Places of faces that can be changed at the same time, each list after the one before.

    Crops that overlap have to be cut out one after the other, or else the later one would bring
    back what the earlier one had changed.

    Args:
        faces: in the order in which they are changed.
        template: of their crops.
    """
    quads = [corners(face.five, template) for face in faces]
    spans = [(quad.min(0), quad.max(0)) for quad in quads]
    found: list[list[int]] = []
    for n, (low, high) in enumerate(spans):
        after = 0
        for number, some in enumerate(found):
            if any((low < spans[k][1]).all() and (spans[k][0] < high).all() for k in some):
                after = number + 1
        if after == len(found):
            found.append([])
        found[after].append(n)
    return found


def planes(crops: NDArray[np.uint8], scale: float, shift: float) -> NDArray[np.float32]:
    """Images as networks take them: float32 [N, 3, H, W], each value times `scale` plus `shift`.

    Args:
        crops: uint8 [N, H, W, 3].
        scale: of a level.
        shift: added after that.
    """
    count, height, width, _ = crops.shape
    result = np.empty((count, 3, height, width), np.float32)
    np.multiply(crops.transpose(0, 3, 1, 2), np.float32(scale), out=result)
    result += np.float32(shift)
    return result
