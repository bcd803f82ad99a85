"""The source's pixels around its face, and how they are drawn where the target's face is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.face import mesh_of
from function.faces.swappers.mesh.recipe import RECIPE
from function.faces.swappers.mesh.warp import Grid, Warp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.swappers.protocol import SourceFace
    from function.faces.topology import Topology

_MARGIN = 0.2  # around the mesh, in its extents: what lies outside of the outline may be drawn
_LARGEST = 2.0  # times the size of the target; more is averaged away at once


@dataclass(frozen=True, slots=True)
class Texture:
    """A part of a photo with a face.

    Attributes:
        pixels: uint8 [H, W, 3] RGB, at most about twice as large as it is going to be drawn.
        mesh: float32 [468, 3] in its pixels.
        finer: whether it is larger than it is going to be drawn.
    """

    pixels: NDArray[np.uint8]
    mesh: NDArray[np.float32]
    finer: bool

    @classmethod
    def around(cls, source: SourceFace, size: float) -> Texture:
        """The part around a source's face, to be drawn with an `extent` of `size` pixels."""
        pixels, mesh = source.picture.pixels, mesh_of(source.face)
        margin = _MARGIN * extent(mesh) + 2
        height, width = pixels.shape[:2]
        last = width - 1, height - 1
        left, top = np.clip(mesh[:, :2].min(0) - margin, 0, last).astype(int)
        right, bottom = np.clip(mesh[:, :2].max(0) + margin, 0, last).astype(int) + 1
        part = pixels[top:bottom, left:right]
        points = mesh - np.array([left, top, 0], np.float32)
        ratio = extent(mesh) / size
        if ratio > _LARGEST:
            cells = max(1, round(max(part.shape) * _LARGEST / ratio))
            small = Grid.over(part.shape[1], part.shape[0], cells)
            part = np.asarray(cv2.resize(part, small.size, interpolation=cv2.INTER_AREA), np.uint8)
            points = small.place(points)
        return cls(part, points, ratio > RECIPE.finer)

    def drawn(
        self, mesh: NDArray[np.float32], grid: Grid, size: tuple[int, int], topology: Topology
    ) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The face drawn on a mesh.

        Args:
            mesh: float32 [468, 3], where its points shall lie, in cells of the grid.
            grid: over the region that is drawn.
            size: (width, height) of the region in pixels.
            topology: of the mesh.

        Returns:
            uint8 [height, width, 3] RGB, and bool [h, w], the cells that show real skin.
        """
        warp = Warp.fit(mesh, self.mesh, grid, topology, RECIPE.ring)
        usable = warp.usable & warp.inside(self.pixels.shape[1], self.pixels.shape[0])
        return warp.sample(self.pixels, size, self.finer), usable


def extent(mesh: NDArray[np.float32]) -> float:
    """The long side of the mesh's bounding box in pixels."""
    return max(float(np.ptp(mesh[:, :2], 0).max()), 1.0)
