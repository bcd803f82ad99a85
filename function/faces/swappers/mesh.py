"""The embedded swap: the source's skin on the target's mesh, in the target's light.

No network and no synthesis: every texture comes from the source photo. The head's outline, hair and
light stay the target's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.swappers import colour, mask, warp
from function.faces.topology import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.caution import Caution
    from function.faces.face import Face
    from function.faces.swappers.protocol import Source

_CELLS = 160
_SHRINK = 1.7


class MeshSwapper:
    """Swaps faces by warping the mesh.

    Args:
        topology: of the mesh; the embedded one if not given.
    """

    def __init__(self, topology: Topology | None = None) -> None:
        self._topology = topology or Topology.load()

    def swap(
        self, canvas: NDArray[np.uint8], target: Face, source: Source, *, gray: bool
    ) -> tuple[Caution, ...]:
        """See `Swapper.swap`."""
        box = target.box
        left, top = max(int(box.left), 0), max(int(box.top), 0)
        region = canvas[top : int(box.bottom), left : int(box.right)]
        height, width = region.shape[:2]
        if min(height, width) < 2:
            return ()
        grid = warp.Grid.over(width, height, _CELLS)
        mesh = target.mesh - np.array([left, top, 0], np.float32)
        cells = np.column_stack([grid.cells(mesh[:, :2]), mesh[:, 2] / grid.step[0]])
        texture, points = _texture(source, target, gray)
        fitted = warp.fit(cells, points, grid, self._topology)
        warped = _sample(texture, fitted.maps, (width, height))
        small = cv2.resize(warped, grid.size, interpolation=cv2.INTER_AREA).astype(np.float32)
        under = cv2.resize(region, grid.size, interpolation=cv2.INTER_AREA).astype(np.float32)
        face = float(np.ptp(cells[:, 0]))
        hard = mask.polygon(cells[self._topology.oval, :2], grid.size) & fitted.usable
        above = mask.forehead(cells, grid.size)
        hard &= ~above | (mask.skin(small, cells) & mask.skin(under, cells))
        soft = mask.soften(hard, 0.035 * face)
        gain, offset = colour.transfer(small, under, soft, 0.16 * face)
        _blend(region, warped, soft, gain, offset)
        return ()


def _texture(
    source: Source, target: Face, gray: bool
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """The source's pixels around its face, shrunk when much larger than needed, and its mesh there."""
    pixels, mesh = source.picture.pixels, source.face.mesh
    size = np.ptp(mesh[:, :2], 0).max()
    margin = 0.05 * size + 2
    height, width = pixels.shape[:2]
    left, top = np.clip(np.floor(mesh[:, :2].min(0) - margin), 0, (width - 1, height - 1)).astype(
        int
    )
    right, bottom = np.clip(np.ceil(mesh[:, :2].max(0) + margin), 1, (width, height)).astype(int)
    part = pixels[top : max(bottom, top + 1), left : max(right, left + 1)]
    points = mesh - np.array([left, top, 0], np.float32)
    ratio = size / max(float(np.ptp(target.mesh[:, :2], 0).max()), 1.0)
    if ratio > _SHRINK:
        height, width = part.shape[:2]
        new = max(1, round(width / ratio)), max(1, round(height / ratio))
        part = cv2.resize(part, new, interpolation=cv2.INTER_AREA)
        factor = np.array([new[0] / width, new[1] / height], np.float32)
        points[:, :2] = (points[:, :2] + 0.5) * factor - 0.5
    if gray:
        part = cv2.merge([cv2.cvtColor(part, cv2.COLOR_RGB2GRAY)] * 3)
    return part, points


def _sample(
    texture: NDArray[np.uint8], maps: NDArray[np.float32], size: tuple[int, int]
) -> NDArray[np.uint8]:
    full = cv2.resize(maps, size, interpolation=cv2.INTER_LINEAR)
    return np.asarray(
        cv2.remap(texture, full, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.uint8
    )


def _blend(
    region: NDArray[np.uint8],
    warped: NDArray[np.uint8],
    soft: NDArray[np.float32],
    gain: NDArray[np.float32],
    offset: NDArray[np.float32],
) -> None:
    """Put the corrected face on the region, in place."""
    size = region.shape[1], region.shape[0]
    keep = cv2.resize(1 - soft, size)[..., None]
    scale = cv2.resize(gain * soft[..., None], size)
    shift = cv2.resize(offset * soft[..., None], size)
    region[:] = np.clip(region * keep + warped * scale + shift + 0.5, 0, 255)
