"""Make skin grow over what must not stay: brows above the new ones, frames, bands at a mask's edge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.geometry import median
from function.faces.swappers.mesh.warp import Enlarged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.swappers.mesh.grain import Noise

_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
_MOST_BROW = 0.6  # share of a dark thing that lies on brows, if it is one
_ROWS = 128
_LEAST = 1e-4  # weight below which a cell of a pyramid knows nothing


def fill(
    image: NDArray[np.float32], weight: NDArray[np.float32], sigma: float
) -> NDArray[np.float32]:
    """A smooth continuation of the parts of an image that count.

    Push-pull (Gortler, Grzeszczuk, Szeliski and Cohen 1996): weighted means are halved until
    nothing is unknown, then each level fills what the one below does not know.

    Args:
        image: float32 [h, w, c].
        weight: float32 [h, w], 0–1, how much each cell counts.
        sigma: of the blur of what was filled, in cells.

    Returns:
        float32 [h, w, c]; where the weight is 1 that is the image, blurred.
    """
    levels = [(image * weight[..., None], weight)]
    while min(levels[-1][1].shape) > 1 and levels[-1][1].min() < 1:
        total, known = (cv2.resize(part, _half(part), interpolation=cv2.INTER_AREA)
                        for part in levels[-1])
        more = np.minimum(4 * known, 1) / np.maximum(known, _LEAST)
        levels.append((total * more[..., None], known * more))
    total, known = levels.pop()
    whole = total / np.maximum(known, _LEAST)[..., None]
    for total, known in reversed(levels):
        coarse = cv2.resize(whole, known.shape[::-1], interpolation=cv2.INTER_LINEAR)
        whole = total + (1 - known)[..., None] * coarse.reshape(total.shape)
    blurred = cv2.GaussianBlur(whole, (0, 0), max(sigma, 0.3), borderType=cv2.BORDER_REPLICATE)
    return np.asarray(blurred, np.float32).reshape(image.shape)


def hair(
    image: NDArray[np.float32],
    skin: NDArray[np.bool_],
    brows: NDArray[np.bool_],
    dark: float,
) -> NDArray[np.bool_]:
    """What is dark and hangs together with more than brows; bool [h, w].

    Args:
        image: float32 [h, w, 3] RGB 0–255.
        skin: bool [h, w].
        brows: bool [h, w], where a dark thing that does not go on elsewhere is a brow.
        dark: share of the skin's usual luminance.
    """
    if not skin.any():
        return ~skin
    luma = image @ _LUMA
    shade = luma < dark * float(median(luma[skin]))
    count, labels = cv2.connectedComponents(shade.astype(np.uint8), connectivity=4)
    sizes = np.bincount(labels.ravel(), minlength=count)
    inside = np.bincount(labels[brows], minlength=count)
    return np.asarray(shade & (inside < _MOST_BROW * sizes)[labels])


def hole(
    brows: NDArray[np.bool_],
    frame: NDArray[np.bool_],
    soft: NDArray[np.float32],
    hair: NDArray[np.bool_],
    covered: float,
) -> NDArray[np.bool_]:
    """What of the target must not stay where the new face does not cover it.

    Args:
        brows: bool [h, w], the target's brows and what is around them.
        frame: bool [h, w], its spectacles.
        soft: float32 [h, w], the mask of the new face.
        hair: bool [h, w], which hangs before the brows.
        covered: where the mask is at least that much, nothing shows through.
    """
    return (brows & ~hair | frame) & (soft < covered)


def put(
    region: NDArray[np.uint8], skin: NDArray[np.float32], share: NDArray[np.float32], grain: Noise | None
) -> None:
    """Put skin on the region, in place, in the rectangle that needs it only.

    Args:
        region: uint8 [H, W, 3] RGB.
        skin: float32 [h, w, 3], on the grid.
        share: float32 [h, w], how much of it counts.
        grain: that of the region.
    """
    height, width = region.shape[:2]
    columns, rows = share.any(0).nonzero()[0], share.any(1).nonzero()[0]
    if not len(rows):
        return
    down, across = height / share.shape[0], width / share.shape[1]
    span = slice(max(int((rows[0] - 1) * down), 0), min(int((rows[-1] + 2) * down) + 1, height))
    wide, weight = Enlarged(skin, (width, height)), Enlarged(share, (width, height))
    for top in range(span.start, span.stop, _ROWS):
        band = slice(top, min(top + _ROWS, span.stop))
        part, much = region[band], weight[band]
        new = wide[band]
        if grain:
            new = cv2.add(new, cv2.cvtColor(grain.rows(band, width), cv2.COLOR_GRAY2RGB))
        mixed = cv2.blendLinear(new, part.astype(np.float32), much, 1 - much)
        part[:] = cv2.convertScaleAbs(np.maximum(mixed, 0))


def _half(part: NDArray[np.float32]) -> tuple[int, int]:
    return max(part.shape[1] // 2, 1), max(part.shape[0] // 2, 1)
