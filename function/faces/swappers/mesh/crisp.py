"""Sharpen eyes and brows, which make a face somebody's, and which every warp has softened."""

from __future__ import annotations

from dataclasses import dataclass
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


def sharpen(
    drawn: NDArray[np.uint8],
    mesh: NDArray[np.float32],
    width: float,
    target: NDArray[np.uint8],
    place: NDArray[np.float32],
) -> None:
    """Unsharp mask, in place, over eyes with their brows that are softer than the target's.

    Args:
        drawn: uint8 [H, W, 3] RGB.
        mesh: float32 [468, 3] in its pixels.
        width: of the face in pixels.
        target: uint8 [H, W, 3] RGB.
        place: float32 [468, 3], the target's mesh.
    """
    sigma = max(RECIPE.crisp_sigma * width, 0.6)
    for eye in _EYES:
        have, want = _part(drawn, mesh[eye, :2], sigma), _part(target, place[eye, :2], sigma)
        if have is None or want is None:
            continue
        share = min(want.strength / max(have.strength, 1e-3) - 1, RECIPE.crisp)
        if share <= 0:
            continue
        fine = np.clip(share * have.fine, -RECIPE.crisp_most, RECIPE.crisp_most)
        new = have.pixels + fine * have.where[..., None] + 0.5
        have.pixels[:] = np.clip(new, 0, 255).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class _Eye:
    """An eye and its brow.

    Attributes:
        pixels: uint8 [h, w, 3] RGB, a view.
        where: float32 [h, w], 0–1.
        fine: float32 [h, w, 3], what is finer than the unsharp mask.
        strength: of that, by the brightness.
    """

    pixels: NDArray[np.uint8]
    where: NDArray[np.float32]
    fine: NDArray[np.float32]
    strength: float


def _part(image: NDArray[np.uint8], points: NDArray[np.float32], sigma: float) -> _Eye | None:
    """The part of an image with an eye's points float32 [n, 2]; None if it is not in there."""
    margin = int(4 * sigma) + 2
    low = np.maximum(np.floor(points.min(0)).astype(int) - margin, 0)
    high = np.minimum(np.ceil(points.max(0)).astype(int) + margin, image.shape[1::-1])
    if (high - low).min() < 3:
        return None
    pixels = image[low[1] : high[1], low[0] : high[0]]
    where = np.zeros(pixels.shape[:2], np.float32)
    cv2.fillConvexPoly(where, cv2.convexHull(np.round(points - low).astype(np.int32)), (1.0,))
    where = cv2.GaussianBlur(where, (0, 0), 1.5 * sigma)
    fine = pixels.astype(np.float32)
    fine -= cv2.GaussianBlur(fine, (0, 0), sigma)
    strength = (np.abs(fine).mean(2) * where).sum() / max((pixels.mean(2) * where).sum(), 1.0)
    return _Eye(pixels, where, fine, float(strength))
