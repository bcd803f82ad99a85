"""The embedded swap: the source's skin and build on the target's head, in the target's light.

No network: every texture comes from the source photo, the outline, hair and light from the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import cv2
import numpy as np

from function.faces import pose
from function.faces.face import mesh_of
from function.faces.swappers import colour, mask, shape
from function.faces.swappers.colour import Light
from function.faces.swappers.grain import Grain, roughness
from function.faces.swappers.warp import Enlarged, Grid, Warp
from function.faces.topology import Topology
from function.quality_warning import QualityWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.options import SwapOptions
    from function.faces.swappers.grain import Noise
    from function.faces.swappers.protocol import SourceFace

_T = TypeVar("_T", np.uint8, np.float32)

_WHITE = np.full(3, 255, np.float32)
_CELLS = 128  # of the long side of the grid
_SHRINK = 1.7  # sources this much larger than the target are shrunk before they are sampled
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

    def reach(self, _: NDArray[np.float32]) -> NDArray[np.float32]:
        """No points, float32 [0, 2]: nothing outside of the mesh changes."""
        return np.empty((0, 2), np.float32)

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
        grid = Grid.over(width, height, _CELLS)
        place = mesh_of(target) - np.array([left, top, 0], np.float32)
        texture, points = _texture(source, target)

        keep_mouth = shape.opening(place) > shape.opening(points) + _OWN_MOUTH
        mesh = grid.place(shape.blend(points, place, self._topology, keep_mouth))
        warp = Warp.fit(mesh, points, grid, self._topology)
        drawn = warp.sample(texture, (width, height))
        small, under = grid.shrink(drawn), grid.shrink(region)

        zones = mask.Zones.of(mesh, grid, self._topology)
        was = grid.place(place)
        skin = mask.skin(small, mesh), mask.skin(under, was)
        oval = zones.crop(zones.oval)
        usable = warp.usable & warp.inside(texture.shape[1], texture.shape[0])
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
        soft, plain = zones.cut(*skin, near.differs(small, under), usable)
        spared = zones.spared(soft)
        wide = Light.of(small, under, visible, _WIDE * zones.width)
        light = wide.toward(near, zones.rim(soft))
        gain, offset = light.correction(small, under, soft * visible[0] * visible[1])
        if keep_mouth:
            soft = zones.without_mouth(soft)
        offset += gain * (small - seen)
        gain *= balance
        detail = 1 - zones.plainness(plain)[..., None]
        gain, offset = gain * detail, near.target + detail * (offset - near.target)
        drawn, grain = self._fit_sharpness(drawn, region, float(balance.mean()))
        _blend(region, drawn, (gain, offset), soft, grain)
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


def _texture(source: SourceFace, target: Face) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """The source's pixels around its face, not much larger than needed, and its mesh in them."""
    pixels, mesh = source.picture.pixels, mesh_of(source.face)
    margin = 0.05 * _extent(mesh) + 2
    height, width = pixels.shape[:2]
    last = width - 1, height - 1
    left, top = np.clip(mesh[:, :2].min(0) - margin, 0, last).astype(int)
    right, bottom = np.clip(mesh[:, :2].max(0) + margin, 0, last).astype(int) + 1
    part = pixels[top:bottom, left:right]
    points = mesh - np.array([left, top, 0], np.float32)
    ratio = _extent(mesh) / _extent(mesh_of(target))
    if ratio > _SHRINK:
        small = Grid.over(part.shape[1], part.shape[0], max(1, round(max(part.shape) / ratio)))
        part = np.asarray(cv2.resize(part, small.size, interpolation=cv2.INTER_AREA), np.uint8)
        points = small.place(points)
    return part, points


def _without_colour(image: NDArray[_T]) -> NDArray[_T]:
    """The luminance in all three channels; [h, w, 3] uint8 or float32, RGB."""
    gray = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    return np.asarray(gray, image.dtype)


def _blend(
    region: NDArray[np.uint8],
    drawn: NDArray[np.uint8],
    correction: tuple[NDArray[np.float32], NDArray[np.float32]],
    soft: NDArray[np.float32],
    grain: Noise | None,
) -> None:
    """Put the corrected face on the region, in place; uint8 [H, W, 3], the rest on the grid."""
    size = region.shape[1], region.shape[0]
    gain, offset, share = (Enlarged(part, size) for part in (*correction, soft))
    for rows in share.bands():
        face = cv2.multiply(drawn[rows], gain[rows], dtype=cv2.CV_32F)
        face = cv2.add(face, offset[rows], dst=face)
        if grain:
            noise = cv2.cvtColor(grain.rows(rows, size[0]), cv2.COLOR_GRAY2RGB)
            face = cv2.add(face, noise, dst=face)
        whole = cv2.convertScaleAbs(np.maximum(face, 0, out=face))
        weight, under = share[rows], region[rows]
        under[:] = cv2.blendLinear(whole, under, weight, 1 - weight)


def _warnings(
    target: Face, source: SourceFace, seen: dict[QualityWarning, bool]
) -> tuple[QualityWarning, ...]:
    """The warnings about this pair: by its geometry, and those `seen` in its pixels."""
    found = []
    if pose.extreme(target.pose, source.face.pose):
        found.append(QualityWarning.EXTREME_POSE)
    if _extent(mesh_of(source.face)) < _FEW_PIXELS * _extent(mesh_of(target)):
        found.append(QualityWarning.LOW_RESOLUTION_SOURCE)
    return *found, *(warning for warning, holds in seen.items() if holds)


def _extent(mesh: NDArray[np.float32]) -> float:
    """The long side of the mesh's bounding box in pixels."""
    return max(float(np.ptp(mesh[:, :2], 0).max()), 1.0)
