"""The embedded swap: the source's skin and build on the target's head, in the target's light.

No network: every texture comes from the source photo, the outline, hair and light from the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import cv2
import numpy as np

from function.caution import Caution
from function.faces.swappers import colour, mask, shape
from function.faces.swappers.colour import Light
from function.faces.swappers.grain import Grain, roughness
from function.faces.swappers.warp import Grid, Warp
from function.faces.topology import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.swappers.protocol import Source

_T = TypeVar("_T", np.uint8, np.float32)

_WHITE = np.full(3, 255, np.float32)
_CELLS = 128  # of the long side of the grid
_SHRINK = 1.7  # sources this much larger than the target are shrunk before they are sampled
_WIDE, _NEAR = 0.16, 0.08  # sigmas of the light in face widths: inside, and close to the edge
_SHARPER = 1.6  # a source this much rougher than the target is softened
_SOFTEN = 0.22  # by this sigma times their ratio, in pixels
_OWN_MOUTH = (
    0.05  # by this much more open (widths of the mouth) the target keeps its mouth's inside
)

_TURNED, _TURNED_APART = 40.0, 35.0  # degrees
_FEW_PIXELS = 0.4  # size of the source's face over the target's
_COVERED = 0.15  # share of the bare skin of one face that is hidden
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

    def swap(
        self, canvas: NDArray[np.uint8], target: Face, source: Source, *, gray: bool
    ) -> tuple[Caution, ...]:
        """See `Swapper.swap`."""
        box = target.box
        left, top = max(int(box.left), 0), max(int(box.top), 0)
        region = canvas[top : max(int(box.bottom), 0), left : max(int(box.right), 0)]
        height, width = region.shape[:2]
        if min(height, width) < 2:
            return ()
        grid = Grid.over(width, height, _CELLS)
        place = target.mesh - np.array([left, top, 0], np.float32)
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
        burnt = colour.overexposed(small, visible[0])
        extreme = burnt or colour.overexposed(under, visible[1])
        extreme |= colour.too_dark(small, visible[0]) or colour.too_dark(under, visible[1])
        if gray or burnt:  # only now: colour tells skin from hair; what is clipped has none
            drawn, small = _without_colour(drawn), _without_colour(small)
        balance = colour.balance(small, under, visible[0] & visible[1])
        seen = small = small * balance
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
        drawn, noise = self._fit_sharpness(drawn, region, float(balance.mean()))
        _blend(region, drawn, (gain, offset), soft, noise)
        if gray:
            region[..., 1:] = region[..., :1]
        covered = max(mask.covered(skin[0], mesh), mask.covered(skin[1], was))
        return _cautions(
            target,
            source,
            {
                Caution.OCCLUDED: covered > _COVERED or spared > _SPARED,
                Caution.EXTREME_LIGHT: extreme,
                Caution.GRAY_SOURCE: source.picture.gray and not gray,
            },
        )

    def _fit_sharpness(
        self, drawn: NDArray[np.uint8], region: NDArray[np.uint8], gain: float
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32] | None]:
        """Soften a face that is too sharp for the target; make the noise that a soft one lacks."""
        height, width = region.shape[:2]
        middle = slice(height // 3, -(-height * 5 // 6)), slice(width // 4, -(-width * 3 // 4))
        have, want = gain * roughness(drawn[middle]), roughness(region[middle])
        if have > _SHARPER * want:
            sigma = min(_SOFTEN * have / max(want, 0.5), 0.005 * width + 0.5)
            return np.asarray(cv2.GaussianBlur(drawn, (0, 0), sigma), np.uint8), None
        return drawn, self._grain.missing(have, want, (width, height))


def _texture(source: Source, target: Face) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """The source's pixels around its face, not much larger than needed, and its mesh in them."""
    pixels, mesh = source.picture.pixels, source.face.mesh
    margin = 0.05 * _extent(mesh) + 2
    height, width = pixels.shape[:2]
    last = width - 1, height - 1
    left, top = np.clip(mesh[:, :2].min(0) - margin, 0, last).astype(int)
    right, bottom = np.clip(mesh[:, :2].max(0) + margin, 0, last).astype(int) + 1
    part = pixels[top:bottom, left:right]
    points = mesh - np.array([left, top, 0], np.float32)
    ratio = _extent(mesh) / _extent(target.mesh)
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
    noise: NDArray[np.float32] | None,
) -> None:
    """Put the corrected face on the region, in place; uint8 [H, W, 3], the rest on the grid."""
    size = region.shape[1], region.shape[0]
    gain, offset = (cv2.resize(part, size) for part in correction)
    face = cv2.multiply(drawn, gain, dtype=cv2.CV_32F)
    face = cv2.add(face, offset, dst=face)
    if noise is not None:
        face = cv2.add(face, cv2.cvtColor(noise, cv2.COLOR_GRAY2RGB), dst=face)
    whole = cv2.convertScaleAbs(np.maximum(face, 0, out=face))
    share = cv2.resize(soft, size)
    region[:] = cv2.blendLinear(whole, region, share, 1 - share)


def _cautions(target: Face, source: Source, seen: dict[Caution, bool]) -> tuple[Caution, ...]:
    """What may look wrong about this pair: by its geometry, and what was `seen` in its pixels."""
    yaws = target.pose.yaw, source.face.pose.yaw
    found = []
    if max(map(abs, yaws)) > _TURNED or abs(yaws[0] - yaws[1]) > _TURNED_APART:
        found.append(Caution.EXTREME_POSE)
    if _extent(source.face.mesh) < _FEW_PIXELS * _extent(target.mesh):
        found.append(Caution.LOW_RESOLUTION_SOURCE)
    return *found, *(caution for caution, holds in seen.items() if holds)


def _extent(mesh: NDArray[np.float32]) -> float:
    """The long side of the mesh's bounding box in pixels."""
    return max(float(np.ptp(mesh[:, :2], 0).max()), 1.0)
