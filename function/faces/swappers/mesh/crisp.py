"""Sharpen eyes and brows, which make a face somebody's, and which every warp has softened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.swappers.mesh.recipe import RECIPE

if TYPE_CHECKING:
    from numpy.typing import NDArray


# outlines by mesh index: a brow and the eye below it, of either side
_EYES = (
    [70, 63, 105, 66, 107, 55, 133, 155, 154, 153, 145, 144, 163, 7, 33],
    [300, 293, 334, 296, 336, 285, 362, 382, 381, 380, 374, 373, 390, 249, 263],
)


def sharpen(drawn: NDArray[np.uint8], mesh: NDArray[np.float32], width: float) -> None:
    """Unsharp mask over both eyes and their brows, in place.

    Args:
        drawn: uint8 [H, W, 3] RGB.
        mesh: float32 [468, 3] in its pixels.
        width: of the face in pixels.
    """
    sigma = max(RECIPE.crisp_sigma * width, 0.6)
    margin = int(4 * sigma) + 2
    for eye in _EYES:
        points = mesh[eye, :2]
        low = np.maximum(np.floor(points.min(0)).astype(int) - margin, 0)
        high = np.minimum(np.ceil(points.max(0)).astype(int) + margin, drawn.shape[1::-1])
        if (high - low).min() < 3:
            continue
        part = drawn[low[1] : high[1], low[0] : high[0]]
        where = np.zeros(part.shape[:2], np.float32)
        cv2.fillConvexPoly(where, cv2.convexHull(np.round(points - low).astype(np.int32)), (1.0,))
        where = cv2.GaussianBlur(where, (0, 0), 1.5 * sigma)
        fine = part.astype(np.float32)
        fine -= cv2.GaussianBlur(fine, (0, 0), sigma)
        fine = np.clip(RECIPE.crisp * fine, -RECIPE.crisp_most, RECIPE.crisp_most)
        part[:] = np.clip(part + fine * where[..., None] + 0.5, 0, 255).astype(np.uint8)
