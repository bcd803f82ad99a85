"""Take out colour that the source brought along: red rims around eyes, glare, blotches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.swappers.mesh.recipe import RECIPE

if TYPE_CHECKING:
    from numpy.typing import NDArray


def calmed(
    image: NDArray[np.float32],
    light: NDArray[np.float32],
    width: float,
    where: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """What to add to a face so that its colour stays near the light it stands in.

    Only what is larger than `calm_sigma` is touched, in Lab: chroma is pulled to the light's, and
    lightness is bent (tanh) where glare is to be expected.

    Args:
        image: float32 [h, w, 3] RGB 0–255, the face in the target's light.
        light: float32 [h, w, 3] RGB 0–255, large-scale colour of the target's skin.
        width: of the face in cells.
        where: float32 [h, w] each, how much a cell lies around a spectacled eye, and how much it is
            skin, 0–1.

    Returns:
        float32 [h, w, 3] levels.
    """
    rims, skin = where
    sigma = max(RECIPE.calm_sigma * width, 0.3)
    low = cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    base, there = lab(low), lab(light)
    away = base - there
    keep = 1 - rims * (1 - RECIPE.calm_rims) - skin * (1 - RECIPE.calm_skin)
    pulled = away * keep[..., None]
    limit = np.float32(RECIPE.calm_light)
    pulled[..., 0] = away[..., 0] + rims * (limit * np.tanh(away[..., 0] / limit) - away[..., 0])
    return rgb(there + pulled) - rgb(base)


def lab(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """CIE L*a*b* of sRGB float32 [h, w, 3], 0–255; what is outside of that is clipped."""
    unit = np.clip(image * np.float32(1 / 255), 0, 1)
    return np.asarray(cv2.cvtColor(unit, cv2.COLOR_RGB2Lab), np.float32)


def rgb(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """The inverse of `lab`."""
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_Lab2RGB) * np.float32(255), np.float32)
