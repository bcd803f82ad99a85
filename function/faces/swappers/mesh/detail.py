"""Match the strength of skin texture, and the height of highlights, with the target's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.geometry import median
from function.faces.swappers.mesh.recipe import RECIPE

if TYPE_CHECKING:
    from numpy.typing import NDArray


_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
_FEW = 30  # cells, below which statistics say nothing


def matched(
    face: NDArray[np.float32],
    target: NDArray[np.float32],
    width: float,
    skin: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> NDArray[np.float32]:
    """What to add to a face so that its skin is as lively as the target's.

    Detail is what a Gaussian of `detail` leaves. Its luminance is scaled by the ratio of the
    median absolute deviations, its chroma likewise, and bright spots are bent down (tanh) to what
    the target shows.

    Args:
        face: float32 [h, w, 3] RGB 0–255, in the target's light.
        target: float32 [h, w, 3] RGB 0–255.
        width: of the face in cells.
        skin: bool [h, w] each, skin of the face and of the target.

    Returns:
        float32 [h, w, 3] levels; 0 where the face shows no skin.
    """
    if min(int(part.sum()) for part in skin) < _FEW:
        return np.zeros_like(face)
    sigma = max(RECIPE.detail * width, 0.5)
    (luma, chroma), (want_luma, want_chroma) = (_parts(part, sigma) for part in (face, target))
    spread = _spread(want_luma[skin[1]])
    gain = np.clip(spread / max(_spread(luma[skin[0]]), 1e-3), *RECIPE.detail_luma)
    have, want = (
        _spread(np.abs(part[at]).sum(1)) for part, at in ((chroma, skin[0]), (want_chroma, skin[1]))
    )
    colour = np.clip(want / max(have, 1e-3), *RECIPE.detail_chroma)
    limit = np.float32(max(RECIPE.highlight * spread, 1.0))
    new = luma * np.float32(gain)
    new = np.where(new > limit, limit + limit * np.tanh(new / limit - 1) / 2, new)
    change = (new - luma)[..., None] + chroma * np.float32(colour - 1)
    weight = cv2.GaussianBlur(skin[0].astype(np.float32), (0, 0), max(0.006 * width, 0.3))
    return np.asarray(change * weight[..., None] * skin[0][..., None], np.float32)


def _parts(
    image: NDArray[np.float32], sigma: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Luminance [h, w] and chroma [h, w, 3] of the detail."""
    rest = image - cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    luma = rest @ _LUMA
    return luma, rest - luma[..., None]


def _spread(values: NDArray[np.float32]) -> float:
    """The median absolute deviation, as a standard deviation."""
    return 1.4826 * float(median(np.abs(values - median(values))))
