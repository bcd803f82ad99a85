"""Which part of the target's face is replaced, and how softly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BROWS = [70, 63, 105, 66, 107, 336, 296, 334, 293, 300]  # upper edge, from image left
_TOP = [251, 284, 332, 297, 338, 10, 109, 67, 103, 54, 21]  # of the oval, from image right
_SKIN = [50, 101, 118, 205, 187, 280, 330, 347, 425, 411, 4, 5, 195, 197]  # cheeks and nose


def polygon(points: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.bool_]:
    """The cells inside a closed outline float32 [n, 2]; bool [h, w]."""
    image = np.zeros(size[::-1], np.uint8)
    cv2.fillPoly(image, [np.round(points * 16).astype(np.int32)], 1, cv2.LINE_8, 4)
    return image.astype(bool)


def forehead(shape: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.bool_]:
    """The cells above the brows, where hair and hats are; bool [h, w]."""
    up = (shape[10, :2] - shape[2, :2]) * 0.04
    return polygon(np.concatenate([shape[_BROWS, :2] + up, shape[_TOP, :2] + 3 * up]), size)


def skin(
    image: NDArray[np.float32], points: NDArray[np.float32], limit: float = 3.0
) -> NDArray[np.bool_]:
    """The cells that have the colour of this face's cheeks and nose.

    Args:
        image: float32 [h, w, 3] RGB 0–255.
        points: float32 [468, 2 or 3] the mesh in cells.
        limit: distance in robust standard deviations.
    """
    lab = cv2.cvtColor(np.clip(image, 0, 255).astype(np.uint8), cv2.COLOR_RGB2LAB)
    lab = cv2.blur(lab, (3, 3)).astype(np.float32)
    height, width = image.shape[:2]
    x, y = np.round(points[_SKIN, :2]).astype(int).T
    inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
    if inside.sum() < 3:
        return np.ones(image.shape[:2], bool)
    sample = lab[y[inside], x[inside]]
    middle = np.median(sample, 0)
    deviation = 1.4826 * np.median(np.abs(sample - middle), 0)
    scaled = (lab - middle) / np.maximum(deviation, (14, 5, 5))
    return np.asarray((scaled**2).sum(2) < limit**2)


def soften(mask: NDArray[np.bool_], sigma: float) -> NDArray[np.float32]:
    """Erode and feather: 0 at the outline, 1 from about two sigma inside; float32 [h, w]."""
    blurred = cv2.GaussianBlur(
        mask.astype(np.float32), (0, 0), sigma, borderType=cv2.BORDER_REPLICATE
    )
    return np.clip((blurred - 0.5) * 2.1, 0, 1)
