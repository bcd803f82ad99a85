"""Make the warped face fit the light of the target: its large-scale colour, not its details."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GAIN = (0.6, 1.6)
_FLOOR = 12.0
"""Keeps the ratio of two dark colours quiet (levels of 0–255)."""


def transfer(
    warped: NDArray[np.float32],
    target: NDArray[np.float32],
    mask: NDArray[np.float32],
    sigma: float,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Smooth gain and offset with which `warped` gets the target's large-scale colour.

    The gain is the ratio of the two blurred images (light multiplies skin, so detail scales with
    it); what its limits leave over becomes the offset.

    Args:
        warped: float32 [h, w, 3] RGB 0–255, the source's face on the grid.
        target: float32 [h, w, 3] RGB 0–255.
        mask: float32 [h, w], 0–1, which cells to compare.
        sigma: of the blur, in cells.

    Returns:
        gain and offset, float32 [h, w, 3]: corrected = gain · warped + offset.
    """
    weight = mask[..., None] + np.float32(1e-4)
    norm = _blur(mask + np.float32(1e-4), sigma)[..., None]
    low_w = _blur(warped * weight, sigma) / norm
    low_t = _blur(target * weight, sigma) / norm
    gain = np.clip((low_t + _FLOOR) / (low_w + _FLOOR), *_GAIN)
    return gain, low_t - gain * low_w


def _blur(image: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    return np.asarray(
        cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE), np.float32
    )
