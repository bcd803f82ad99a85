"""How well a photo serves as a source, when there are several of one person.

Counted in degrees: as if all that is wrong with a photo were that the face is turned away. What
each thing costs was measured on photos of the same face; see docs/quality.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import geometry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.face import Box
    from function.faces.swappers.protocol import SourceFace

_PER_HALVING = 10.0
"""A face of half the size, or of half the detail, is as good as one that is turned so much more."""
_ENOUGH = 512.0
"""A larger face, in pixels, is not a better source."""
_SHARP = 0.6
"""Fine detail over coarse, of a face in focus; a blur of 3 pixels leaves 0.3 of it."""
_CLIPPED, _PER_CLIPPED = 250, 30.0
"""From this level on nothing is seen; cost of a face that is all so."""
_GRAY = 5.0
"""Cost of a photo without colour."""
_SIDE = 128
_MIDDLE = slice(24, 104), slice(32, 96)
"""Of a box of that side, rows and columns: neither hair nor background."""


def of(source: SourceFace) -> float:
    """The fitness of a photo; more is better."""
    face = source.face
    size = min(max(face.box.width, face.box.height, 1.0), _ENOUGH)
    turned = math.hypot(face.pose.yaw, face.pose.pitch)
    skin = _middle(source.picture.pixels, face.box)
    clipped = float((skin.max(2) >= _CLIPPED).mean())
    return (
        _PER_HALVING * (math.log2(size) + math.log2(_detail(skin)))
        - turned
        - _PER_CLIPPED * clipped
        - _GRAY * source.picture.gray
    )


def weights(fitness: Sequence[float]) -> NDArray[np.float64]:
    """How much each of a person's photos counts for the identity; the best counts 1."""
    every = np.array(fitness)
    return np.asarray(np.exp2((every - every.max()) / _PER_HALVING))


def _middle(pixels: NDArray[np.uint8], box: Box) -> NDArray[np.uint8]:
    """The middle of a face, where its box has a side of 128 pixels; uint8 [80, 64, 3] RGB."""
    scale = _SIDE / max(box.width, box.height, 1.0)
    shift = _SIDE / 2 - scale * np.array(box.center)
    matrix = np.column_stack([scale * np.eye(2), shift])
    return geometry.crop(pixels, matrix, (_SIDE, _SIDE), cv2.BORDER_REPLICATE)[_MIDDLE]


def _detail(skin: NDArray[np.uint8]) -> float:
    """How much finer detail a face has than a blurred one, at most 1; see `_SHARP`.

    The ratio of two bands, which neither light nor contrast changes.
    """
    luma = cv2.cvtColor(skin, cv2.COLOR_RGB2GRAY).astype(np.float32)
    fine, middle, coarse = (cv2.GaussianBlur(luma, (0, 0), sigma) for sigma in (1, 2, 4))
    ratio = float((luma - fine).std()) / max(float((middle - coarse).std()), 1e-3)
    return min(max(ratio, 0.05) / _SHARP, 1.0)
