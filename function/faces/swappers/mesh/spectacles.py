"""Find the frame of spectacles, of which nothing of the target's may stay.

What lies inside of the face is replaced with it; what gives a swap away are the tips of a frame,
which stick out of the face.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.geometry import median
from function.faces.swappers.mesh.blend import blurred
from function.faces.swappers.mesh.recipe import RECIPE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.swappers.mesh.mask import Zones

# by mesh index
_EYES = ([33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246],
         [263, 249, 390, 373, 374, 380, 381, 382, 362, 398, 384, 385, 386, 387, 388,
          466])  # fmt: skip
_OUTER, _BRIDGE = (33, 263), 168
_CHEEKS = (50, 280, 205, 425, 117, 346)
# windows as (from, to) in face widths: outwards from an eye's corner and down; around the bridge
_BESIDE, _BRIDGE_WINDOW = ((0.02, 0.11), (-0.11, 0.05)), ((-0.05, 0.05), (-0.05, 0.09))


@dataclass(frozen=True, slots=True)
class Frame:
    """Spectacles that a face wears.

    Attributes:
        tips: bool [h, w], its parts beside the eyes.
        rough: bool [h, w], wherever there is more contrast than on skin: rims among others.
    """

    tips: NDArray[np.bool_]
    rough: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EyeLine:
    """Coordinates along and across the line of the eyes, in face widths.

    Attributes:
        x: float32 [h, w] of each cell, from the middle between the eyes to the image's right.
        y: float32 [h, w], from the line of the eyes to the chin.
        half: of the distance of the outer corners of the eyes.
    """

    x: NDArray[np.float32]
    y: NDArray[np.float32]
    half: float

    @classmethod
    def of(cls, mesh: NDArray[np.float32], shape: tuple[int, ...], width: float) -> EyeLine:
        """That of a mesh float32 [468, 3] in cells on a grid [h, w]; `width` of a face in cells."""
        left, right = (mesh[corner, :2].astype(np.float64) for corner in _OUTER)
        apart = float(max(np.hypot(*(right - left)), 1e-6))
        cos, sin = (right - left) / (apart * width)
        middle = (left + right) / 2
        x = np.arange(shape[1], dtype=np.float32) - np.float32(middle[0])
        y = (np.arange(shape[0], dtype=np.float32) - np.float32(middle[1]))[:, None]
        return cls(
            np.asarray(cos * x + sin * y, np.float32),
            np.asarray(cos * y - sin * x, np.float32),
            apart / width / 2,
        )

    def window(self, across: tuple[float, float], down: tuple[float, float]) -> NDArray[np.bool_]:
        """The cells between these; bool [h, w]."""
        x, y = self.x, self.y
        return (x > across[0]) & (x < across[1]) & (y > down[0]) & (y < down[1])


def frame(lab: NDArray[np.float32], mesh: NDArray[np.float32], zones: Zones) -> Frame | None:
    """The parts of a frame beside the eyes, or None for a face without spectacles.

    Spectacles are there when both temples show something dark that is not skin, where one of them
    might be hair, and the bridge of the nose has more contrast than the cheeks. The frame is what
    hangs together with that by its colour.

    Args:
        lab: float32 [h, w, 3], see `calm.lab`.
        mesh: float32 [468, 3] in cells.
        zones: of the face; its outline and width count.
    """
    width = zones.width
    line = EyeLine.of(mesh, lab.shape, width)
    cheeks = np.zeros(lab.shape[:2], np.uint8)
    for point in mesh[list(_CHEEKS), :2]:
        cv2.circle(cheeks, np.round(point).astype(int).tolist(), max(1, round(0.05 * width)), 1, -1)
    skin, bridge = cheeks > 0, line.window(*_BRIDGE_WINDOW)
    if not skin.any() or not bridge.any():
        return None
    usual = median(lab[skin], 0).astype(np.float32)
    away = lab - usual
    unlike = np.sqrt((away * away).sum(2))
    other = (unlike > RECIPE.frame_unlike) & (away[..., 0] < -RECIPE.frame_darker)
    oval = zones.crop(zones.oval)
    (low, high), down = _BESIDE
    left = line.window((-line.half - high, -line.half - low), down)
    right = line.window((line.half + low, line.half + high), down)
    seeds = [other & oval & window for window in (left, right)]
    if min(int(seed.sum()) for seed in seeds) < RECIPE.frame_least * width**2:
        return None
    fine = lab - blurred(lab, 0.02 * width)
    contrast = np.sqrt((fine * fine).sum(2))
    if contrast[bridge].mean() < RECIPE.frame_bridge * median(contrast[skin]):
        return None
    own = median(lab[seeds[0] | seeds[1]], 0).astype(np.float32)
    near = np.sqrt(((lab - own) ** 2).sum(2)) < RECIPE.frame_near * np.linalg.norm(own - usual)
    found = _grown(near & other | seeds[0] | seeds[1], seeds, line, zones)
    return Frame(found, contrast > 3 * median(contrast[skin]))


def _grown(
    other: NDArray[np.bool_],
    seeds: list[NDArray[np.bool_]],
    line: EyeLine,
    zones: Zones,
) -> NDArray[np.bool_]:
    """The seeds and what hangs together with them beside the eyes, inside their own height."""
    beyond = zones.crop(cv2.distanceTransform((~zones.oval).astype(np.uint8), cv2.DIST_L2, 3))
    found = np.zeros(other.shape, bool)
    for side, seed in zip((-1, 1), seeds, strict=True):
        heights = line.y[seed]
        top, bottom = (
            float(np.partition(heights, k)[k])
            for k in (len(heights) // 20, len(heights) - 1 - len(heights) // 20)
        )
        near = line.window((-9, 9), (top - 0.02, bottom + 0.02)) & (side * line.x > 0.6 * line.half)
        count, labels = cv2.connectedComponents((other & near).astype(np.uint8), connectivity=8)
        wanted = np.zeros(count, bool)
        wanted[labels[seed]] = True
        wanted[0] = False
        part = wanted[labels] | seed
        out = part & (beyond > 0)
        if out.sum() > RECIPE.frame_hair * zones.width**2:
            part &= ~out
        found |= part & (beyond <= RECIPE.frame_reach * zones.width)
    return found


def rims(mesh: NDArray[np.float32], frame: Frame, width: float) -> NDArray[np.float32]:
    """How much each cell lies around a spectacled eye, float32 [h, w]; not the eye or frame."""
    eyes = np.zeros(frame.tips.shape, np.uint8)
    for eye in _EYES:
        cv2.fillConvexPoly(eyes, cv2.convexHull(np.round(mesh[eye, :2]).astype(np.int32)), 1)
    away = cv2.distanceTransform(1 - eyes, cv2.DIST_L2, 3) / width
    around = (away < RECIPE.calm_reach) & (away > 0.02) & ~frame.tips & ~frame.rough
    return blurred(around.astype(np.float32), 0.012 * width)
