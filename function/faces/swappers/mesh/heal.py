"""Make skin grow over what must not stay: old brows above the new ones, frames of spectacles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.geometry import median
from function.faces.swappers.mesh.blend import blurred
from function.faces.swappers.mesh.grain import roughness
from function.faces.swappers.mesh.mask import disc
from function.faces.swappers.mesh.recipe import RECIPE
from function.faces.swappers.mesh.warp import Enlarged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.swappers.mesh.grain import Grain
    from function.faces.swappers.mesh.mask import Zones
    from function.faces.swappers.mesh.relight import Relit
    from function.faces.swappers.mesh.spectacles import Frame

_EDGE = 0.006  # sigma of the edge of a hole, in face widths
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
_MOST_BROW = 0.6  # share of a dark thing that lies on brows, if it is one
_ROWS = 128
_LEAST = 1e-4  # weight below which a cell of a pyramid knows nothing


@dataclass(frozen=True, slots=True)
class Hole:
    """A part of the target that is healed.

    Attributes:
        skin: float32 [h, w, 3] RGB 0–255, what belongs there, on the grid.
        share: float32 [h, w], how much of it counts, 0–1.
    """

    skin: NDArray[np.float32]
    share: NDArray[np.float32]

    def healed(self, under: NDArray[np.float32]) -> NDArray[np.float32]:
        """The target float32 [h, w, 3] on the grid without it."""
        return under + self.share[..., None] * (self.skin - under)

    def heal(self, region: NDArray[np.uint8], grain: Grain) -> None:
        """Put the skin on the target, uint8 [H, W, 3] RGB, in place, as grainy as that is."""
        height, width = region.shape[:2]
        skin, share = Enlarged(self.skin, (width, height)), Enlarged(self.share, (width, height))
        rows = np.flatnonzero(self.share.max(1))
        step = height / len(self.share)
        end = min(int((rows[-1] + 2) * step) + 1, height)
        noise = grain.missing(0, roughness(region), width)
        for top in range(max(int((rows[0] - 1) * step), 0), end, _ROWS):
            band = slice(top, min(top + _ROWS, end))
            new, much = skin[band], share[band]
            if noise:
                new = cv2.add(new, cv2.cvtColor(noise.rows(band, width), cv2.COLOR_GRAY2RGB))
            mixed = cv2.blendLinear(new, region[band].astype(np.float32), much, 1 - much)
            region[band] = cv2.convertScaleAbs(np.maximum(mixed, 0))


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
        total, known = (
            cv2.resize(part, _half(part), interpolation=cv2.INTER_AREA) for part in levels[-1]
        )
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


def find(
    face: NDArray[np.float32],
    lit: Relit,
    soft: NDArray[np.float32],
    zones: Zones,
    old: tuple[NDArray[np.bool_], Frame | None],
) -> Hole | None:
    """What of the target must not stay where the new face does not cover it.

    Args:
        face: float32 [h, w, 3] RGB 0–255, the new face as it is going to be.
        lit: what it was made from.
        soft: float32 [h, w], its mask.
        zones: of the new face.
        old: bool [h, w], the target's brows and what is around them, and its spectacles.
    """
    brows, frame = old
    width, oval, skin = zones.width, zones.crop(zones.oval), lit.skin
    lock = hair(lit.under, skin[1], brows, RECIPE.hair)
    gone = np.zeros(soft.shape, bool)
    if frame is not None:
        gone = cv2.dilate(frame.tips.astype(np.uint8), disc(RECIPE.frame_grow * width)) > 0
    hole = (brows & oval & ~lock | gone) & (soft < RECIPE.covered)
    if not hole.any():
        return None
    known = np.where(soft >= RECIPE.covered, skin[0], skin[1] & ~hole & ~lock & ~gone)
    mixed = lit.under + soft[..., None] * (face - lit.under)
    new = fill(mixed, known.astype(np.float32), RECIPE.smooth * width)
    if gone.any():
        new[~oval] = inpaint(lit.under, gone)[~oval]
    share = np.minimum(2 * blurred(hole.astype(np.float32), _EDGE * width), np.float32(1))
    return Hole(new, share)


def inpaint(image: NDArray[np.float32], where: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The image float32 [h, w, 3], 0–255, with what surrounds a hole bool [h, w] grown over it.

    By Telea 2004, which continues edges: what lies beside a face is of several things.
    """
    whole = np.clip(image, 0, 255).astype(np.uint8)
    return np.asarray(cv2.inpaint(whole, where.astype(np.uint8), 2, cv2.INPAINT_TELEA), np.float32)


def _half(part: NDArray[np.float32]) -> tuple[int, int]:
    return max(part.shape[1] // 2, 1), max(part.shape[0] // 2, 1)
