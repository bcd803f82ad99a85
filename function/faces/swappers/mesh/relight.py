"""The drawn face in the target's light, and which part of the target it replaces; on the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeVar

import cv2
import numpy as np

from function.faces.swappers.mesh import colour
from function.faces.swappers.mesh.colour import Light

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.swappers.mesh.mask import Zones

_T = TypeVar("_T", np.uint8, np.float32)

_WHITE = np.full(3, 255, np.float32)
_WIDE, _NEAR = 0.16, 0.1  # sigmas of the light in face widths: inside, and close to the edge
_BURNT = 0.9  # a source of which this share is clipped has no colour to give
_CLIPPED = 0.5  # share of the skin of one face that is clipped


@dataclass(frozen=True, slots=True)
class Relit:
    """How a drawn face gets the target's light.

    Attributes:
        drawn: float32 [h, w, 3] RGB 0–255, the warped source in the light of the target as a whole.
        face: float32 [h, w, 3] RGB 0–255, the result: gain · drawn + offset.
        under: float32 [h, w, 3] RGB 0–255, the target, with what is clipped as bright as it was.
        gain, offset: float32 [h, w, 3].
        soft: float32 [h, w], the mask of what is replaced, 0–1.
        light: float32 [h, w, 3] RGB 0–255, the large-scale colour of the target's skin.
        skin: bool [h, w] each, cells of the source and of the target that have the colour of skin.
        usable: bool [h, w], where the source has texture to give.
        balance: float32 [3], the gain between the two photos as a whole.
        gray: only the luminance of the drawn face counts.
        extreme: one of the faces is overexposed or nearly black.
        spared: the share of the face that is not replaced, 0–1.
    """

    drawn: NDArray[np.float32]
    face: NDArray[np.float32]
    under: NDArray[np.float32]
    gain: NDArray[np.float32]
    offset: NDArray[np.float32]
    soft: NDArray[np.float32]
    light: NDArray[np.float32]
    skin: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    usable: NDArray[np.bool_]
    balance: NDArray[np.float32]
    gray: bool
    extreme: bool
    spared: float

    @classmethod
    def of(
        cls,
        drawn: NDArray[np.float32],
        under: NDArray[np.float32],
        skin: tuple[NDArray[np.bool_], NDArray[np.bool_]],
        usable: NDArray[np.bool_],
        zones: Zones,
        *,
        gray: bool,
    ) -> Self:
        """Relight a face.

        Args:
            drawn: float32 [h, w, 3] RGB 0–255, the warped source.
            under: float32 [h, w, 3] RGB 0–255, the target.
            skin: bool [h, w] each, cells of the two that have the colour of skin.
            usable: bool [h, w], where the source has texture to give.
            zones: of the drawn face.
            gray: the target has no colour.
        """
        oval = zones.crop(zones.oval)
        visible = skin[0] & oval & usable, skin[1] & oval
        both = list(zip((drawn, under), visible, strict=True))
        clipped = [colour.overexposure(*each) for each in both]
        extreme = max(clipped) > _CLIPPED or any(colour.too_dark(*each) for each in both)
        gray = gray or clipped[0] > _BURNT
        if gray:  # only now: colour tells skin from hair
            drawn = without_colour(drawn)
        balance = colour.balance(drawn, under, visible[0] & visible[1])
        seen = small = drawn * balance
        # each photo's light tells how bright the other's clipped parts were
        near = Light.of(small, under, visible, _NEAR * zones.width)
        small = colour.unclipped(small, near.target, 255 * balance)
        under = colour.unclipped(under, near.source, _WHITE)
        near = Light.of(small, under, visible, _NEAR * zones.width)
        soft, plain = zones.cut(*skin, near.differs(small, under), usable)
        wide = Light.of(small, under, visible, _WIDE * zones.width)
        light = wide.toward(near, zones.rim(soft))
        gain, offset = light.correction(small, under, soft * visible[0] * visible[1])
        offset += gain * (small - seen)
        gain *= balance
        detail = 1 - zones.plainness(plain)[..., None]
        gain, offset = gain * detail, near.target + detail * (offset - near.target)
        face = gain * drawn + offset
        spared = zones.spared(soft)
        return cls(
            small, face, under, gain, offset, soft, light.target, skin, usable, balance, gray,
            extreme, spared,
        )  # fmt: skip


def without_colour(image: NDArray[_T]) -> NDArray[_T]:
    """The luminance in all three channels; [h, w, 3] uint8 or float32, RGB."""
    gray = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    return np.asarray(gray, image.dtype)
