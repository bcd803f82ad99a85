"""Take out colour that the source brought along: red rims around eyes, glare, blotches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.swappers.mesh.blend import blurred
from function.faces.swappers.mesh.recipe import RECIPE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.swappers.mesh.relight import Relit


def calmed(
    lit: Relit,
    width: float,
    rims: NDArray[np.float32],
    skin: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> NDArray[np.float32]:
    """What to add to a face so that its colour stays near the light it stands in.

    Only what is larger than `calm_sigma` is touched, in Lab: chroma is pulled to the light's where
    the target's own skin strays less from it, and lightness is bent (tanh) where glare is to be
    expected.

    Args:
        lit: the face, the target and its light.
        width: of the face in cells.
        rims: float32 [h, w], how much a cell lies around a spectacled eye, 0–1.
        skin: bool [h, w] each, skin of the face and of the target.

    Returns:
        float32 [h, w, 3] levels.
    """
    sigma = max(RECIPE.calm_sigma * width, 0.3)
    base, under = (lab(blurred(image, sigma)) for image in (lit.face, lit.under))
    there = lab(lit.light)
    away = base - there
    have, want = _chroma(away, skin[0]), _chroma(under - there, skin[1])
    usual = float(np.clip(want / max(have, 1e-3), RECIPE.calm_skin, 1))
    keep = np.where(skin[0], np.float32(usual), np.float32(1))
    keep = keep - rims * (1 - RECIPE.calm_rims)
    pulled = away * keep[..., None]
    limit = np.float32(RECIPE.calm_light)
    pulled[..., 0] = away[..., 0] + rims * (limit * np.tanh(away[..., 0] / limit) - away[..., 0])
    return rgb(there + pulled) - rgb(base)


def _chroma(away: NDArray[np.float32], skin: NDArray[np.bool_]) -> float:
    """How far skin strays in a* and b*; 0 where none is seen."""
    return float(np.abs(away[skin][:, 1:]).mean()) if skin.any() else 0.0


def lab(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """CIE L*a*b* of sRGB float32 [h, w, 3], 0–255; what is outside of that is clipped."""
    unit = np.clip(image * np.float32(1 / 255), 0, 1)
    return np.asarray(cv2.cvtColor(unit, cv2.COLOR_RGB2Lab), np.float32)


def rgb(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """The inverse of `lab`."""
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_Lab2RGB) * np.float32(255), np.float32)
