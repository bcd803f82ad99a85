"""The embedded swap: the source's skin and build on the target's head, in the target's light.

No network: every texture comes from the source photo, the outline, hair and light from the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import cv2
import numpy as np

from function.faces import pose
from function.faces.face import mesh_of
from function.faces.swappers.mesh import calm, colour, crisp, detail, heal, mask, mirror, shape, spectacles
from function.faces.swappers.mesh.blend import blend, blurred, second_band
from function.faces.swappers.mesh.colour import Light
from function.faces.swappers.mesh.grain import Grain, roughness
from function.faces.swappers.mesh.recipe import RECIPE
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

_T = TypeVar("_T", np.uint8, np.float32)

_WHITE = np.full(3, 255, np.float32)
_WIDE, _NEAR = 0.16, 0.08  # sigmas of the light in face widths: inside, and close to the edge
_SHARPER = 1.6  # a source this much rougher than the target is softened
_SOFTEN = 0.22  # by this sigma times their ratio, in pixels
_BURNT = 0.9  # a source of which this share is clipped has no colour to give
_OWN_MOUTH = (
    0.05  # by this much more open (widths of the mouth) the target keeps its mouth's inside
)

_FEW_PIXELS = 0.4  # size of the source's face over the target's
_COVERED = 0.15  # share of the bare skin of one face that is hidden
_CLIPPED = 0.5  # share of the skin of one face that is clipped
_SPARED = 0.3  # share of the face that could not be replaced


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
        wide = self._topology.outward(mesh_of(fitted), 1 + 2 * RECIPE.reach)
        return wide[len(mesh_of(fitted)) :, :2]

    def swap_all(
        self,
        canvas: NDArray[np.uint8],
        targets: Sequence[Face],
        sources: Sequence[SourceFace],
        _: SwapOptions,
        *,
        gray: bool,
    ) -> list[tuple[QualityWarning, ...]]:
        """Replace the targets one after the other; their warnings."""
        pairs = zip(targets, sources, strict=True)
        return [self.swap(canvas, target, source, gray=gray) for target, source in pairs]

    def swap(
        self, canvas: NDArray[np.uint8], target: Face, source: SourceFace, *, gray: bool
    ) -> tuple[QualityWarning, ...]:
        """Replace one face; its warnings."""
        box = target.box
        left, top = max(int(box.left), 0), max(int(box.top), 0)
        region = canvas[top : max(int(box.bottom), 0), left : max(int(box.right), 0)]
        height, width = region.shape[:2]
        if min(height, width) < 2:
            return ()
        grid = Grid.over(width, height, RECIPE.cells)
        place = mesh_of(target) - np.array([left, top, 0], np.float32)
        texture = Texture.around(source, extent(place))
        points = texture.mesh

        keep_mouth = shape.opening(place) > shape.opening(points) + _OWN_MOUTH
        moved = shape.blend(points, place, self._topology, keep_mouth)
        mesh = grid.place(moved)
        zones = mask.Zones.of(mesh, grid, self._topology)
        turned = mirror.wanted(source.face.pose, target.pose, RECIPE)
        drawn, usable = texture.drawn(mesh, grid, (width, height), self._topology, turned)
        crisp.sharpen(drawn, moved, zones.width * grid.step[0], RECIPE)
        small, under = grid.shrink(drawn), grid.shrink(region)

        was = grid.place(place)
        skin = mask.skin(small, mesh), mask.skin(under, was)
        oval = zones.crop(zones.oval)
        visible = skin[0] & oval & usable, skin[1] & oval
        both = list(zip((small, under), visible, strict=True))
        clipped = [colour.overexposure(*each) for each in both]
        extreme = max(clipped) > _CLIPPED or any(colour.too_dark(*each) for each in both)
        if gray or clipped[0] > _BURNT:  # only now: colour tells skin from hair
            drawn, small = _without_colour(drawn), _without_colour(small)
        balance = colour.balance(small, under, visible[0] & visible[1])
        seen = small = small * balance
        # each photo's light tells how bright the other's clipped parts were
        near = Light.of(small, under, visible, _NEAR * zones.width)
        small = colour.unclipped(small, near.target, 255 * balance)
        under = colour.unclipped(under, near.source, _WHITE)
        near = Light.of(small, under, visible, _NEAR * zones.width)
        soft, plain = zones.cut(*skin, near.differs(small, under), usable, RECIPE)
        spared = zones.spared(soft)
        labs = calm.lab(small), calm.lab(under)
        carried = spectacles.frame(labs[0], mesh, zones, RECIPE.frame_carried, RECIPE)
        removed = spectacles.frame(labs[1], was, zones, RECIPE.frame_removed, RECIPE)
        wide = Light.of(small, under, visible, _WIDE * zones.width)
        light = wide.toward(near, zones.rim(soft))
        gain, offset = light.correction(small, under, soft * visible[0] * visible[1])
        if keep_mouth:
            soft = zones.without_mouth(soft)
        offset += gain * (small - seen)
        gain *= balance
        plainness = 1 - zones.plainness(plain)[..., None]
        gain, offset = gain * plainness, near.target + plainness * (offset - near.target)
        face = gain * grid.shrink(drawn) + offset
        bare = visible[0] & visible[1]
        rims = np.zeros(bare.shape, np.float32)
        if carried is not None:
            rims = spectacles.rims(mesh, carried, zones.width, RECIPE)
            soft = np.maximum(soft, carried.soft * usable)
        change = calm.calmed(face, light.target, zones.width, rims, visible[0].astype(np.float32), RECIPE)
        face += change
        offset += change
        change = detail.matched(face, under, zones.width, visible, RECIPE)
        face += change
        offset += change
        width = zones.width
        hair = heal.hair(under, skin[1], zones.brows(was, RECIPE.brow), RECIPE.hair)
        gone = np.zeros(bare.shape, bool)
        if removed is not None:
            gone = cv2.dilate(removed.tips.astype(np.uint8), mask._disc(RECIPE.frame_grow * width)) > 0
        hole = heal.hole(zones.brows(was, RECIPE.brow) & oval, gone, soft, hair, RECIPE.covered)
        if hole.any():
            known = np.where(soft >= RECIPE.covered, skin[0], skin[1] & ~hole & ~hair & ~gone)
            if removed is not None:
                known |= ~oval & ~gone
            mixed = under + soft[..., None] * (face - under)
            fill = heal.fill(mixed, known.astype(np.float32), RECIPE.smooth * width)
            much = blurred(hole.astype(np.float32), 0.006 * width)
            much = np.minimum(2 * much, 1)
            heal.put(region, fill, much, self._grain.missing(0, roughness(region)))
            under = under + much[..., None] * (fill - under)
        where = blurred(bare.astype(np.float32), 0.02 * zones.width) * bare
        low = second_band(face, under, soft, where, RECIPE.band * zones.width)
        drawn, grain = self._fit_sharpness(drawn, region, float(balance.mean()))
        blend(region, drawn, (gain, offset), soft, low, grain)
        if gray:
            region[..., 1:] = region[..., :1]
        covered = max(mask.covered(skin[0], mesh), mask.covered(skin[1], was))
        return _warnings(
            target,
            source,
            {
                QualityWarning.OCCLUDED: covered > _COVERED or spared > _SPARED,
                QualityWarning.EXTREME_LIGHT: extreme,
                QualityWarning.GRAY_SOURCE: source.picture.gray and not gray,
            },
        )

    def _fit_sharpness(
        self, drawn: NDArray[np.uint8], region: NDArray[np.uint8], gain: float
    ) -> tuple[NDArray[np.uint8], Noise | None]:
        """Soften a face that is too sharp for the target; make the noise that a soft one lacks.

        `gain` is what the face is going to be multiplied by.
        """
        height, width = region.shape[:2]
        middle = slice(height // 3, -(-height * 5 // 6)), slice(width // 4, -(-width * 3 // 4))
        have, want = gain * roughness(drawn[middle]), roughness(region[middle])
        if have > _SHARPER * want:
            sigma = min(_SOFTEN * have / max(want, 0.5), 0.005 * width + 0.5)
            return np.asarray(cv2.GaussianBlur(drawn, (0, 0), sigma), np.uint8), None
        return drawn, self._grain.missing(have, want)


def _without_colour(image: NDArray[_T]) -> NDArray[_T]:
    """The luminance in all three channels; [h, w, 3] uint8 or float32, RGB."""
    gray = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    return np.asarray(gray, image.dtype)


def _warnings(
    target: Face, source: SourceFace, seen: dict[QualityWarning, bool]
) -> tuple[QualityWarning, ...]:
    """The warnings about this pair: by its geometry, and those `seen` in its pixels."""
    found = []
    if pose.extreme(target.pose, source.face.pose):
        found.append(QualityWarning.EXTREME_POSE)
    if extent(mesh_of(source.face)) < _FEW_PIXELS * extent(mesh_of(target)):
        found.append(QualityWarning.LOW_RESOLUTION_SOURCE)
    return *found, *(warning for warning, holds in seen.items() if holds)
