"""The embedded swap: the source's skin and build on the target's head, in the target's light.

No network: every texture comes from the source photo, the outline, hair and light from the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import pose
from function.faces.face import mesh_of
from function.faces.swappers.mesh import crisp, mask, shape
from function.faces.swappers.mesh.blend import blend
from function.faces.swappers.mesh.finish import Finish
from function.faces.swappers.mesh.grain import Grain, roughness
from function.faces.swappers.mesh.recipe import RECIPE
from function.faces.swappers.mesh.relight import Relit, without_colour
from function.faces.swappers.mesh.texture import Texture, extent
from function.faces.swappers.mesh.warp import Grid
from function.faces.topology import Topology
from function.quality_warning import QualityWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.face import Face, Fitted
    from function.faces.options import SwapOptions
    from function.faces.swappers.mesh.grain import Noise
    from function.faces.swappers.protocol import SourceFace
    from function.telemetry.timings import Timings

_SHARPER = 1.6  # a source this much rougher than the target is softened
_SOFTEN = 0.22  # by this sigma times their ratio, in pixels
_MIDDLE = np.array([[1 / 4, 1 / 3], [3 / 4, 5 / 6]])
"""Left, top, right and bottom of the part that is compared, in a face's box."""
_OWN_MOUTH = (
    0.05  # by this much more open (widths of the mouth) the target keeps its mouth's inside
)

# what is warned of; docs/quality.md says how well that tells what looks wrong
_FEW_PIXELS = 0.4  # size of the source's face over the target's, when it also has less detail
_BLURRED = 0.12  # roughness of the source's face over the target's
_COVERED = 0.32  # share of the bare skin of one face that is hidden
_SPARED = 0.36  # share of the face that could not be replaced


class MeshSwapper:
    """Swaps faces by warping the mesh.

    Holds nothing that a swap changes, so that threads can share it.

    Args:
        topology: of the mesh; the embedded one if not given.
    """

    def __init__(self, topology: Topology | None = None) -> None:
        self._topology = topology or Topology.load()
        self._grain = Grain()

    def reach(self, fitted: Fitted) -> NDArray[np.float32]:
        """Points a little outside of the outline, float32 [36, 2]: frames stick out there."""
        if fitted.mesh is None:
            return np.empty((0, 2), np.float32)
        return self._topology.outward(fitted.mesh, 1 + 2 * RECIPE.reach)[len(fitted.mesh) :, :2]

    def swap_all(
        self,
        canvas: NDArray[np.uint8],
        targets: Sequence[Face],
        sources: Sequence[SourceFace],
        _: SwapOptions,
        *,
        gray: bool,
        timings: Timings,
    ) -> list[tuple[QualityWarning, ...]]:
        """Replace the targets one after the other; their warnings."""
        pairs = zip(targets, sources, strict=True)
        return [self.swap(canvas, *pair, gray=gray, timings=timings) for pair in pairs]

    def swap(
        self,
        canvas: NDArray[np.uint8],
        target: Face,
        source: SourceFace,
        *,
        gray: bool,
        timings: Timings,
    ) -> tuple[QualityWarning, ...]:
        """Replace one face; its warnings."""
        box = target.box
        left, top = max(int(box.left), 0), max(int(box.top), 0)
        region = canvas[top : max(int(box.bottom), 0), left : max(int(box.right), 0)]
        height, width = region.shape[:2]
        if min(height, width) < 2:
            return ()
        with timings.span("swap.warp"):
            grid = Grid.over(width, height, RECIPE.cells)
            place = mesh_of(target) - np.array([left, top, 0], np.float32)
            texture = Texture.around(source, extent(place))
            keep_mouth = shape.opening(place) > shape.opening(texture.mesh) + _OWN_MOUTH
            turned = abs(target.pose.yaw - source.face.pose.yaw)
            moved = shape.blend(texture.mesh, place, self._topology, keep_mouth, turned)
            mesh, was = grid.place(moved), grid.place(place)
            zones = mask.Zones.of(mesh, grid, self._topology)
            drawn, usable = texture.drawn(mesh, grid, (width, height), self._topology)
            crisp.sharpen(drawn, moved, zones.width * grid.step[0], region, place)
        with timings.span("swap.light"):
            small, under = grid.shrink(drawn), grid.shrink(region)
            skin = mask.skin(small, mesh), mask.skin(under, was)
            lit = Relit.of(small, under, skin, usable, zones, gray=gray)
        with timings.span("swap.finish"):
            finish = Finish.of(lit, mesh, was, zones, keep_mouth=keep_mouth)
            if finish.hole is not None:
                finish.hole.heal(region, self._grain)
        with timings.span("swap.blend"):
            if lit.gray:
                drawn = without_colour(drawn)
            have, want = _roughness(drawn, region, place)
            have *= float(lit.balance.mean())
            drawn, grain = self._fit_sharpness(drawn, have, want)
            blend(region, drawn, finish.layers, grain)
            if gray:
                region[..., 1:] = region[..., :1]
        covered = max(mask.covered(skin[0], mesh), mask.covered(skin[1], was))
        few = extent(mesh_of(source.face)) < _FEW_PIXELS * extent(mesh_of(target)) and have < want
        blurred = have < _BLURRED * want and not lit.extreme
        return _warnings(
            target,
            source,
            {
                QualityWarning.LOW_RESOLUTION_SOURCE: few or blurred,
                QualityWarning.OCCLUDED: covered > _COVERED or lit.spared > _SPARED,
                QualityWarning.EXTREME_LIGHT: lit.extreme,
                QualityWarning.GRAY_SOURCE: source.picture.gray and not gray,
            },
        )

    def _fit_sharpness(
        self, drawn: NDArray[np.uint8], have: float, want: float
    ) -> tuple[NDArray[np.uint8], Noise | None]:
        """Soften a face that is too sharp for the target; make the noise that a soft one lacks."""
        if have > _SHARPER * want:
            width = drawn.shape[1]
            sigma = min(_SOFTEN * have / max(want, 0.5), 0.005 * width + 0.5)
            return np.asarray(cv2.GaussianBlur(drawn, (0, 0), sigma), np.uint8), None
        return drawn, self._grain.missing(have, want, drawn.shape[1])


def _roughness(
    drawn: NDArray[np.uint8], region: NDArray[np.uint8], place: NDArray[np.float32]
) -> tuple[float, float]:
    """That of the middle of the drawn face, and of the target's, whose mesh lies at `place`."""
    low, high = np.clip(place[:, :2].min(0), 0, None), place[:, :2].max(0)
    (left, top), (right, bottom) = (low + part * (high - low) for part in _MIDDLE)
    middle = slice(int(top), int(bottom) + 2), slice(int(left), int(right) + 2)
    return roughness(drawn[middle]), roughness(region[middle])


def _warnings(
    target: Face, source: SourceFace, seen: dict[QualityWarning, bool]
) -> tuple[QualityWarning, ...]:
    """The warnings about this pair: by its geometry, and those `seen` in its pixels."""
    found = []
    if pose.extreme(target.pose, source.face.pose):
        found.append(QualityWarning.EXTREME_POSE)
    return *found, *(warning for warning, holds in seen.items() if holds)
