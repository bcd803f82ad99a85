"""Which part of a crop is replaced: masks of several kinds, of which the least counts.

All are float32 [S, S], 0 for what stays and 1 for what is replaced, on square crops, in whole
steps, so that they lose nothing when they go to a device as bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.align import planes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.runtime.engine import Engine

    Crop = NDArray[np.uint8]
    Soft = NDArray[np.float32]

_BLUR = 0.3  # of the box mask, as a part of half the side
_SOFTEN = 5.0  # pixels
_OCCLUSION_SIDE, _REGION_SIDE = 256, 512
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, RGB
STEPS = 255
"""Of masks, from 0 to 1."""
_FACE_PARTS = (1, 2, 3, 4, 5, 6, 10, 11, 12, 13)
"""Skin, brows, eyes, glasses, nose, mouth and lips among the 19 parts that BiSeNet tells apart."""


@lru_cache(maxsize=32)
def box(size: int) -> Soft:
    """A soft border around nearly all of the crop; read-only."""
    width = int(0.5 * size * _BLUR)
    edge = max(width // 2, 1)
    mask = np.zeros((size, size), np.float32)
    mask[edge:-edge, edge:-edge] = 1
    if width:
        blurred = cv2.GaussianBlur(mask, (0, 0), 0.25 * width)
        mask = stepped(blurred)
    # The blur leaves a trace of the border; at the very edge there must be nothing to see.
    mask[[0, -1]] = 0
    mask[:, [0, -1]] = 0
    mask.setflags(write=False)
    return mask


def area(outline: NDArray[np.float32], size: int) -> Soft:
    """The inside of the convex hull of points float32 [n, 2] in crop pixels."""
    mask = np.zeros((size, size), np.float32)
    hull = cv2.convexHull(np.round(outline).astype(np.int32))
    cv2.fillConvexPoly(mask, hull, (1.0,))
    return softened(mask)


def softened(mask: Soft) -> Soft:
    """The same with a soft edge that lies inside."""
    blurred = cv2.GaussianBlur(mask, (0, 0), _SOFTEN)
    return stepped((np.clip(blurred, 0.5, 1) - 0.5) * 2)


def stepped(mask: Soft) -> Soft:
    """The same in whole steps, and within its limits."""
    return np.asarray(np.rint(np.clip(mask, 0, 1) * STEPS) / STEPS, np.float32)


class Occlusion:
    """XSeg: what covers a face, hands, hair or glasses, is left out.

    Args:
        engine: runs float32 [N, 256, 256, 3], BGR 0–1, to [N, 256, 256, 1], 1 for the face.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def masks(self, crops: Sequence[Crop]) -> list[Soft]:
        """The face that is to be seen on each crop uint8 [S, S, 3] RGB, as one batch."""
        small = np.stack([_resized(crop, _OCCLUSION_SIDE) for crop in crops])
        images = np.multiply(small[..., ::-1], np.float32(1 / 255), dtype=np.float32)
        found = self._engine.run(np.ascontiguousarray(images))[0]
        return [
            softened(_enlarged(np.clip(mask, 0, 1).reshape(images.shape[1:3]), len(crop)))
            for mask, crop in zip(found, crops, strict=True)
        ]


class Regions:
    """BiSeNet: only the parts of a face are replaced, not hair, neck or hat.

    Args:
        engine: runs float32 [N, 3, 512, 512], RGB normalised as ImageNet is, to
            [N, 19, 512, 512], how likely each part is.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def masks(self, crops: Sequence[Crop]) -> list[Soft]:
        """The parts of a face on each crop uint8 [S, S, 3] RGB, as one batch."""
        small = np.stack([_resized(crop, _REGION_SIDE) for crop in crops])
        images = planes(small, 1 / 255, 0.0)
        images -= np.array(_MEAN, np.float32)[:, None, None]
        images /= np.array(_DEVIATION, np.float32)[:, None, None]
        found = self._engine.run(images)[0]
        return [
            softened(_enlarged(np.isin(parts.argmax(0), _FACE_PARTS), len(crop)))
            for parts, crop in zip(found, crops, strict=True)
        ]


def _resized(crop: Crop, side: int) -> Crop:
    way = cv2.INTER_AREA if len(crop) > side else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(crop, (side, side), interpolation=way), np.uint8)


def _enlarged(mask: NDArray[np.generic], side: int) -> Soft:
    flat = np.ascontiguousarray(mask, np.float32)
    return np.asarray(cv2.resize(flat, (side, side), interpolation=cv2.INTER_LINEAR), np.float32)
