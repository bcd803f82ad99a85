"""Piecewise-affine warp between two meshes as one dense map, for a single `cv2.remap`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.geometry import median

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from function.faces.topology import Topology

_STRETCH = 2.6
"""A triangle stretched this much more than the usual one shows smears instead of skin."""
_FAR = 1e5  # keeps fixed-point corners inside of an int32
_BAND, _WHOLE = 1 << 16, 1 << 18  # pixels: of a band, of a region that is one band
SHIFT = 4
"""Fractional bits of polygon corners handed to OpenCV."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A coarse raster over a region of an image: what is smooth is computed here, then enlarged.

    Attributes:
        size: (width, height) in cells.
        step: (x, y) region pixels per cell.
    """

    size: tuple[int, int]
    step: tuple[float, float]

    @classmethod
    def over(cls, width: int, height: int, cells: int) -> Grid:
        """A grid over a region of `width` × `height` pixels, long side at most `cells`."""
        scale = min(1.0, cells / max(width, height))
        size = max(1, round(width * scale)), max(1, round(height * scale))
        return cls(size, (width / size[0], height / size[1]))

    def place(self, mesh: NDArray[np.float32]) -> NDArray[np.float32]:
        """Mesh points float [n, 3] from region pixels to cells (centres are whole numbers)."""
        x, y = self.step
        return np.column_stack(
            [(mesh[:, 0] + 0.5) / x - 0.5, (mesh[:, 1] + 0.5) / y - 0.5, mesh[:, 2] / x]
        ).astype(np.float32)

    def shrink(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """An image of the region, uint8 [H, W, 3], averaged over each cell: float32 [h, w, 3]."""
        small = cv2.resize(image, self.size, interpolation=cv2.INTER_AREA)
        return np.asarray(small, np.float32)


@dataclass(frozen=True, slots=True)
class Warp:
    """Where each cell of the grid finds its texture.

    Attributes:
        maps: float32 [h, w, 2], (x, y) in source pixels. Outside of the mesh: the affine map that
            fits the whole mesh best.
        usable: bool [h, w], cells outside of the mesh or in triangles that show real source skin.
    """

    maps: NDArray[np.float32]
    usable: NDArray[np.bool_]

    @classmethod
    def fit(
        cls,
        mesh: NDArray[np.float32],
        source: NDArray[np.float32],
        grid: Grid,
        topology: Topology,
        ring: float = 1.3,
    ) -> Warp:
        """The map from the grid to the source that takes every triangle onto its counterpart.

        Args:
            mesh: float32 [468, 3], where the points shall lie, in cells; z only orders them.
            source: float32 [468, 3], the source's points in source pixels.
            grid: the raster.
            topology: triangles.
            ring: how far both meshes are continued outside of their oval; see `Topology.outward`.
        """
        triangles = np.concatenate([topology.triangles, topology.ring])
        corners = topology.outward(mesh, ring)[triangles].astype(np.float64)
        to = corners[:, :, :2]
        at = topology.outward(source, ring)[triangles][:, :, :2].astype(np.float64)
        linear, facing = _linear(to, at)
        shift = at[:, 0] - np.einsum("nij,nj->ni", linear, to[:, 0])
        square = np.column_stack([mesh[:, :2], np.ones(len(mesh))])
        whole, *_ = np.linalg.lstsq(square, source[:, :2])
        rows = np.concatenate([whole.T[None], np.concatenate([linear, shift[..., None]], 2)])
        soft = np.concatenate([topology.soft, np.zeros(len(topology.ring), bool)])
        good = np.concatenate([[True], soft | (_spread(linear) & facing)])

        index = _paint(to, corners[:, :, 2].mean(1), grid.size)
        table = rows.astype(np.float32)[index]
        xs = np.arange(grid.size[0], dtype=np.float32)[None, :, None]
        ys = np.arange(grid.size[1], dtype=np.float32)[:, None, None]
        maps = table[..., 0] * xs + table[..., 1] * ys + table[..., 2]
        return cls(maps, good[index])

    def inside(self, width: int, height: int) -> NDArray[np.bool_]:
        """The cells whose texture lies inside a source of that size; bool [h, w]."""
        x, y = self.maps[..., 0], self.maps[..., 1]
        return np.asarray((x >= -0.5) & (y >= -0.5) & (x < width - 0.5) & (y < height - 0.5))

    def sample(
        self, texture: NDArray[np.uint8], size: tuple[int, int], finer: bool = False
    ) -> NDArray[np.uint8]:
        """The texture drawn on a region.

        Args:
            texture: uint8 [H, W, 3].
            size: (width, height) of the region in pixels.
            finer: draw it at twice that size and average, which keeps what is finer than a pixel
                of the region from becoming soft or jagged.

        Returns:
            uint8 [height, width, 3].
        """
        times = 1 + finer
        width, height = times * size[0], times * size[1]
        enlarged = _scale(self.maps) * self.maps.shape[1] < width
        how = cv2.INTER_CUBIC if enlarged and not finer else cv2.INTER_LINEAR
        drawn = np.empty((size[1], size[0], 3), np.uint8)
        maps = Enlarged(self.maps, (width, height), times)
        for rows in maps.bands():
            part = drawn[rows.start // times : rows.stop // times]
            if not finer:
                cv2.remap(texture, maps[rows], None, how, part, cv2.BORDER_REPLICATE)
                continue
            fine = cv2.remap(texture, maps[rows], None, how, None, cv2.BORDER_REPLICATE)
            cv2.resize(fine, part.shape[1::-1], part, interpolation=cv2.INTER_AREA)
        return drawn


class Enlarged:
    """A smooth array of the grid at the size of the region, made a band of rows at a time.

    What a large face needs in float32 would not fit the caches, and hardly the memory.

    Args:
        part: float32 [h, w] or [h, w, c].
        size: (width, height) of the region.
        times: bands have a number of rows that this divides.
    """

    def __init__(self, part: NDArray[np.float32], size: tuple[int, int], times: int = 1) -> None:
        self._size, self._times = size, times
        self._wide = np.asarray(cv2.resize(part, (size[0], part.shape[0])), np.float32)

    def bands(self) -> Iterator[slice]:
        """The region's rows, from the top."""
        width, height = self._size
        step = height if width * height <= _WHOLE else self._times * max(1, _BAND // width)
        return (slice(top, min(top + step, height)) for top in range(0, height, step))

    def __getitem__(self, rows: slice) -> NDArray[np.float32]:
        """Those rows, bilinearly: float32 [n, width] or [n, width, c]."""
        if rows.stop - rows.start == self._size[1]:
            return np.asarray(cv2.resize(self._wide, self._size), np.float32)
        last = len(self._wide) - 1
        scale = len(self._wide) / self._size[1]
        y = np.clip((np.arange(rows.start, rows.stop) + 0.5) * scale - 0.5, 0, last)
        upper = y.astype(np.intp)  # not by a product of matrices: its threads would spin for it
        share = (y - upper).astype(np.float32).reshape(-1, *[1] * (self._wide.ndim - 1))
        band = self._wide[upper]
        band += share * (self._wide[np.minimum(upper + 1, last)] - band)
        return band


def _scale(maps: NDArray[np.float32]) -> float:
    """Source pixels per cell along the middle row."""
    row = maps[maps.shape[0] // 2]
    return float(np.linalg.norm(row[-1] - row[0])) / max(len(row) - 1, 1)


def _linear(
    to: NDArray[np.float64], at: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The 2×2 parts of the affine maps `to` → `at`, and which triangles of `at` face the camera."""
    a, b = to[:, 1] - to[:, 0], to[:, 2] - to[:, 0]
    u, v = at[:, 1] - at[:, 0], at[:, 2] - at[:, 0]
    det = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    det = np.where(np.abs(det) < 1e-3, np.copysign(1e-3, det), det)
    inverse = np.stack([b[:, 1], -b[:, 0], -a[:, 1], a[:, 0]], 1).reshape(-1, 2, 2)
    linear = np.stack([u, v], 2) @ (inverse / det[:, None, None])
    return linear, u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0] > 0


def _spread(linear: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which maps do not smear: their smallest singular value is not far below the usual scale."""
    det = np.linalg.det(linear)
    square = (linear**2).sum((1, 2))
    smallest = np.sqrt(np.maximum(square - np.sqrt(np.maximum(square**2 - 4 * det**2, 0)), 0) / 2)
    return np.asarray(smallest * _STRETCH > median(np.sqrt(np.abs(det))))


def _paint(
    corners: NDArray[np.float64], depth: NDArray[np.floating], size: tuple[int, int]
) -> NDArray[np.int32]:
    """Which triangle (1-based, 0 = none) each cell shows; the nearest is painted last."""
    index = np.zeros(size[::-1], np.int32)
    fixed = np.round(np.clip(corners, -_FAR, _FAR) * (1 << SHIFT)).astype(np.int32)
    for k in np.argsort(-depth, kind="stable").tolist():
        cv2.fillConvexPoly(index, fixed[k], k + 1, cv2.LINE_8, SHIFT)
    return index
