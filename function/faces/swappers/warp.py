"""Piecewise-affine warp between two meshes as one dense map: no loop over pixels, one `cv2.remap`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.topology import Topology

_STRETCH = 2.6
"""A triangle stretched this much more than the usual one shows smears instead of skin."""
_SHIFT = 4  # fractional bits of the polygon corners


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

    def cells(self, points: NDArray[np.floating]) -> NDArray[np.float32]:
        """Region pixels (x, y) → cells. Pixel and cell centres are whole numbers."""
        return ((points + 0.5) / self.step - 0.5).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Warp:
    """Where each cell of the grid finds its texture.

    Attributes:
        maps: float32 [h, w, 2], (x, y) in source pixels. Outside the mesh: the affine map that fits
            the whole mesh best.
        usable: bool [h, w], cells inside triangles that show real source skin.
    """

    maps: NDArray[np.float32]
    usable: NDArray[np.bool_]


def fit(
    shape: NDArray[np.float32], source: NDArray[np.float32], grid: Grid, topology: Topology
) -> Warp:
    """The map from the grid to the source that takes every mesh triangle onto its counterpart.

    Args:
        shape: float32 [468, 3], where the points shall lie, in cells; z only orders them.
        source: float32 [468, 3], the source's points in source pixels.
        grid: the raster.
        topology: triangles.
    """
    to = shape[topology.triangles][:, :, :2].astype(np.float64)
    at = source[topology.triangles][:, :, :2].astype(np.float64)
    linear, area = _linear(to, at)
    shift = at[:, 0] - np.einsum("nij,nj->ni", linear, to[:, 0])
    rows = np.concatenate([linear, shift[:, :, None]], 2)
    index = _paint(to, shape[topology.triangles][:, :, 2].mean(1), grid.size)

    whole, *_ = np.linalg.lstsq(np.column_stack([shape[:, :2], np.ones(len(shape))]), source[:, :2])
    table = np.concatenate([whole.T[None], rows]).astype(np.float32)[index]
    xs, ys = np.arange(grid.size[0], dtype=np.float32), np.arange(grid.size[1], dtype=np.float32)
    maps = table[..., 0] * xs[None, :, None] + table[..., 1] * ys[:, None, None] + table[..., 2]
    good = np.concatenate([[False], topology.soft | (_spread(linear) & (area > 0))])
    return Warp(np.ascontiguousarray(maps), good[index])


def _linear(
    to: NDArray[np.float64], at: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The 2×2 parts of the affine maps `to` → `at`, and the signed areas (×2) of `at`."""
    a, b = to[:, 1] - to[:, 0], to[:, 2] - to[:, 0]
    u, v = at[:, 1] - at[:, 0], at[:, 2] - at[:, 0]
    det = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    det = np.where(np.abs(det) < 1e-3, np.copysign(1e-3, det), det)
    inverse = np.stack([b[:, 1], -b[:, 0], -a[:, 1], a[:, 0]], 1).reshape(-1, 2, 2)
    linear = np.stack([u, v], 2) @ (inverse / det[:, None, None])
    return linear, u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]


def _spread(linear: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which maps do not stretch: smallest singular value not far below the usual scale."""
    det = np.abs(np.linalg.det(linear))
    square = (linear**2).sum((1, 2))
    smallest = np.sqrt(np.maximum(square - np.sqrt(np.maximum(square**2 - 4 * det**2, 0)), 0) / 2)
    return np.asarray(smallest * _STRETCH > np.median(np.sqrt(det)))


def _paint(
    corners: NDArray[np.float64], depth: NDArray[np.floating], size: tuple[int, int]
) -> NDArray[np.int32]:
    """Which triangle (1-based, 0 = none) each cell shows; the nearest is painted last."""
    index = np.zeros(size[::-1], np.int32)
    fixed = np.round(np.clip(corners, -1e5, 1e5) * (1 << _SHIFT)).astype(np.int32)
    for k in np.argsort(-depth, kind="stable").tolist():
        cv2.fillConvexPoly(index, fixed[k], k + 1, cv2.LINE_8, _SHIFT)
    return index
