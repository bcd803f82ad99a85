"""Which part of the target's face is replaced, and how softly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import cv2
import numpy as np

from function.faces.geometry import median
from function.faces.swappers.mesh.colour import CLIPPED, clipped
from function.faces.swappers.mesh.recipe import RECIPE
from function.faces.swappers.mesh.warp import SHIFT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.swappers.mesh.warp import Grid
    from function.faces.topology import Topology

_T = TypeVar("_T", bound=np.generic)

# outlines by mesh index, clockwise from image left
_BROWS = [70, 63, 105, 66, 107, 336, 296, 334, 293, 300]
_HULLS = ([70, 63, 105, 66, 107, 46, 53, 52, 65, 55],
          [300, 293, 334, 296, 336, 276, 283, 282, 295, 285])  # fmt: skip
_TOP = [251, 284, 332, 297, 338, 10, 109, 67, 103, 54, 21]
_INNER = [*_BROWS, 263, 291, 17, 61, 33]
_JAW = [116, 345, 454, 323, 361, 288, 397, 365, 379, 150, 136, 172, 58, 132, 93, 234]
_SKIN = [50, 280, 205, 425, 187, 411, 101, 330, 118, 347, 4, 5, 195, 197, 6, 168, 8, 9, 193, 417,
         122, 351, 107, 336]  # fmt: skip
"""Points on the cheeks and the nose, many of them above what a mask covers."""
_BARE = [8, 9, 6, 168, 195, 197, 4, 5, 223, 443, 230, 450, 229, 449, 110, 339, 117, 346, 50, 280,
         101, 330, 36, 266, 205, 425]  # fmt: skip
"""Points on skin in every face that nothing covers, away from creases and from where beards grow: a
beard is swapped well."""
_LIFT = np.array([3, 1.5, 1, 1, 1, 1, 1, 1, 1.5, 3], np.float32)[:, None]
"""The forehead begins above the brows, and higher at their ends, where spectacles have corners."""

_SPREAD = (0.3, 0.06, 0.08)  # least deviation of skin: log green, log red/green, log green/blue
_SPREAD_MOST = 2.2  # times the least
_SPREAD_GRAY = (0.15, 1.0, 1.0)
_DARK = 0.06  # of the skin's level: keeps ratios in the dark quiet
_SAMPLE = 5  # side in cells of what a sample point shows: less would flicker in clips
_LEAST_RED = 0.2  # share of the usual skin's log red/green
_LIMIT = 3.0  # deviations
_BULK = 0.1  # hair is a mass, spectacles are lines: least radius, in face widths
_RING, _UNLIKE = 0.1, 0.22  # how near the outline (face widths) how much difference is cut
_FEATHER, _FEATHER_CUT = 0.02, 0.025  # sigmas in face widths: at the outline, at what was cut out
_FEATHER_MOUTH = 0.008
_RIM = 0.06


@dataclass(frozen=True, slots=True)
class Zones:
    """The parts of a face on the grid.

    Attributes:
        width: of the face, in cells.
        pad: cells by which `oval` is larger than the grid on every side.
        oval: bool [h + 2 pad, w + 2 pad], inside of the outline, also where the image ends.
        inner: bool [h, w], eyes, nose and mouth: what covers them on the source comes along.
        forehead: bool [h, w], above the brows, where hair and hats are.
        jaw: bool [h, w], below the eyes, without the tip of the chin.
        lips: bool [h, w], between the lips.
    """

    width: float
    pad: int
    oval: NDArray[np.bool_]
    inner: NDArray[np.bool_]
    forehead: NDArray[np.bool_]
    jaw: NDArray[np.bool_]
    lips: NDArray[np.bool_]

    @classmethod
    def of(cls, mesh: NDArray[np.float32], grid: Grid, topology: Topology) -> Zones:
        """The zones of a mesh float32 [468, 3] in cells."""
        xy = mesh[:, :2]
        up = (xy[10] - xy[2]) * 0.04
        width = max(float(np.hypot(*(xy[454] - xy[234]))), float(np.hypot(*(xy[152] - xy[10]))) / 2)
        pad = int(2 * _BULK * width) + 2
        wide = grid.size[0] + 2 * pad, grid.size[1] + 2 * pad
        return cls(
            max(width, 1.0),
            pad,
            _polygon(xy[topology.oval] + pad, wide),
            _polygon(xy[_INNER], grid.size),
            _polygon(np.concatenate([xy[_BROWS] + up * _LIFT, xy[_TOP] + 3 * up]), grid.size),
            _polygon(xy[_JAW], grid.size),
            _polygon(xy[topology.lips], grid.size),
        )

    def crop(self, padded: NDArray[_T]) -> NDArray[_T]:
        """The grid's part of a padded array."""
        return padded[self.pad : -self.pad, self.pad : -self.pad]

    def masses(self, skin: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Large parts that are no skin, together with what lies outside of the face; bool [h, w].

        Opening by a disc: the lines of spectacles, eyes and lips are too thin to survive it.
        """
        other = ~self.oval
        part = self.crop(other)
        np.logical_or(part, ~skin, out=part)
        radius = _BULK * self.width
        core = cv2.distanceTransform(other.astype(np.uint8), cv2.DIST_L2, 3) > radius
        near = cv2.distanceTransform((~core).astype(np.uint8), cv2.DIST_L2, 3) <= radius
        return np.asarray(self.crop(near) | self.forehead & ~skin)

    def cut(
        self,
        source_skin: NDArray[np.bool_],
        target_skin: NDArray[np.bool_],
        unlike: NDArray[np.float32],
        usable: NDArray[np.bool_],
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Decide what is replaced.

        Args:
            source_skin: bool [h, w], skin on the warped source.
            target_skin: bool [h, w], skin on the target.
            unlike: float32 [h, w], see `Light.differs`.
            usable: bool [h, w], where the source has texture to give.

        Returns:
            The mask, float32 [h, w], 0–1; and, bool [h, w], the part of it where neither face has
            skin to show (hair of the one, spectacles of the other): plain skin belongs there.
        """
        hair, other_hair = self.masses(target_skin), self.masses(source_skin) & ~self.inner
        shadow = self.shadow(other_hair, RECIPE.shadow)
        line = cv2.dilate((~target_skin).astype(np.uint8), disc(0.02 * self.width)) > 0
        plain = other_hair & line & ~hair & ~self.forehead & self.crop(self.oval)
        inside = cv2.distanceTransform(self.oval.astype(np.uint8), cv2.DIST_L2, 3)
        ring = self.crop(inside) < _RING * self.width
        edge = ring & self.jaw & ~self.inner & (unlike > _UNLIKE)
        keep = ~hair & ~edge & ~shadow & usable & (~other_hair | plain)
        keep = cv2.medianBlur(keep.astype(np.uint8), 5 if self.width > 80 else 3) > 0
        soft = np.minimum(
            self.crop(_soften(self.oval, _FEATHER * self.width)),
            _soften(keep | ~self.crop(self.oval), _FEATHER_CUT * self.width),
        )
        return soft, plain

    def shadow(self, hair: NDArray[np.bool_], reach: float) -> NDArray[np.bool_]:
        """The forehead that is nearer than that, in face widths, to hair or a hat; bool [h, w]."""
        near = cv2.dilate(hair.astype(np.uint8), disc(reach * self.width)) > 0
        return np.asarray(self.forehead & near)

    def brows(self, mesh: NDArray[np.float32], grow: float) -> NDArray[np.bool_]:
        """The brows of a mesh float32 [468, 3] in cells, grown by face widths; bool [h, w]."""
        size = self.forehead.shape[1::-1]
        hulls = [_polygon(cv2.convexHull(mesh[brow, :2])[:, 0], size) for brow in _HULLS]
        both = (hulls[0] | hulls[1]).astype(np.uint8)
        return np.asarray(cv2.dilate(both, disc(grow * self.width)) > 0)

    def without_mouth(self, soft: NDArray[np.float32]) -> NDArray[np.float32]:
        """The mask less what lies between the lips, float32 [h, w]."""
        return soft * (1 - _blur(self.lips.astype(np.float32), _FEATHER_MOUTH * self.width))

    def spared(self, soft: NDArray[np.float32]) -> float:
        """The share of the face below the forehead that the mask leaves out, 0–1."""
        face = self.crop(self.oval) & ~self.forehead
        return float(1 - soft[face].mean()) if face.any() else 0.0

    def rim(self, soft: NDArray[np.float32]) -> NDArray[np.float32]:
        """How near to the edge of the mask each cell lies: 1 at it, 0 inside; float32 [h, w]."""
        return np.asarray(2 * np.clip(1 - _blur(soft, _RIM * self.width), 0, 0.5), np.float32)

    def plainness(self, plain: NDArray[np.bool_]) -> NDArray[np.float32]:
        """How much of each cell is to be plain skin: the part grown by its feather, 0–1."""
        return np.minimum(2 * _blur(plain.astype(np.float32), _FEATHER * self.width), np.float32(1))


def skin(image: NDArray[np.float32], mesh: NDArray[np.float32]) -> NDArray[np.bool_]:
    """The cells that have the colour of this face's skin.

    Colour is compared as ratios of the channels, which light and shadow leave alone; brightness
    counts little, except in a gray image, which has nothing else. Skin is what the redder half of
    the sample points show: what covers a face, a mask or dark lenses, is nearly always less red.

    Args:
        image: float32 [h, w, 3] RGB 0–255.
        mesh: float32 [468, 3] in cells.

    Returns:
        bool [h, w].
    """
    at = _cells_at(mesh[_SKIN], image.shape)
    if at[0].size < 4:  # the face is hardly in the image
        return np.ones(image.shape[:2], bool)
    level = max(float(median(image[at])), 4.0)
    red, green, blue = cv2.split(cv2.log(cv2.blur(image, (3, 3)) / level + _DARK))
    features = cv2.merge([green, red - green, green - blue])
    spread = np.array(_SPREAD if features[..., 1:].any() else _SPREAD_GRAY)
    sample = cv2.blur(features, (_SAMPLE, _SAMPLE))[at]
    best = np.argsort(-sample[:, 1], kind="stable")[: -(-len(sample) // 2)]
    middle = median(sample[best], 0)
    deviation = 1.4826 * median(np.abs(features[at] - middle), 0)
    deviation = np.clip(deviation, spread, _SPREAD_MOST * spread)
    distance = (features - middle.astype(np.float32)) / deviation.astype(np.float32)
    reddish = features[..., 1] >= _LEAST_RED * middle[1]
    seen = ((distance**2).sum(2) < _LIMIT**2) & reddish
    if median(image[at].max(1)[best]) > CLIPPED:  # clipping changes the ratios
        seen |= clipped(image)
    return np.asarray(seen)


def covered(seen: NDArray[np.bool_], mesh: NDArray[np.float32]) -> float:
    """The share of a face's bare points, 0–1, at which no skin is seen; see `skin`."""
    points = seen[_cells_at(mesh[_BARE], seen.shape)]
    return float(1 - points.mean()) if points.size else 0.0


def _cells_at(
    points: NDArray[np.float32], shape: tuple[int, ...]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row and column of the points that lie on the grid."""
    x, y = np.round(points[:, :2]).astype(np.intp).T
    on = (x >= 0) & (y >= 0) & (x < shape[1]) & (y < shape[0])
    return y[on], x[on]


def _polygon(points: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.bool_]:
    """The cells inside of a closed outline float32 [n, 2]; bool [h, w]."""
    image = np.zeros(size[::-1], np.uint8)
    cv2.fillPoly(image, [np.round(points * (1 << SHIFT)).astype(np.int32)], 1, cv2.LINE_8, SHIFT)
    return image.astype(bool)


def disc(radius: float) -> NDArray[np.uint8]:
    """The kernel that grows a mask by about `radius` cells, at least by one."""
    side = 2 * max(1, round(radius)) + 1
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side)), np.uint8)


def _soften(mask: NDArray[np.bool_], sigma: float) -> NDArray[np.float32]:
    """Erode and feather: 0 at the edge, 1 from about two sigma inside; same shape, float32."""
    blurred = _blur(mask.astype(np.float32), sigma)
    return np.asarray(np.clip((blurred - 0.5) * 2.1, 0, 1), np.float32)


def _blur(image: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    sigma = max(sigma, 0.3)
    blurred = cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(blurred, np.float32)
