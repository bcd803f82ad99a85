"""What makes a relit face presentable: calm, detail, spectacles, heal, and how it is blended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from function.faces.swappers.mesh import calm, detail, heal, spectacles
from function.faces.swappers.mesh.blend import Layers, blurred, second_band
from function.faces.swappers.mesh.recipe import RECIPE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.swappers.mesh.heal import Hole
    from function.faces.swappers.mesh.mask import Zones
    from function.faces.swappers.mesh.relight import Relit

_MEET = 0.02
"""Sigma, in face widths, by which the second band ends where one of the faces shows no skin."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The last decisions of a swap, on the grid.

    Attributes:
        layers: how the drawn face is put on the target.
        hole: what of the target is healed before the face is put on it, or None.
    """

    layers: Layers
    hole: Hole | None

    @classmethod
    def of(
        cls,
        lit: Relit,
        mesh: NDArray[np.float32],
        was: NDArray[np.float32],
        zones: Zones,
        *,
        keep_mouth: bool,
    ) -> Self:
        """Decide.

        Args:
            lit: the relit face.
            mesh: float32 [468, 3], of the drawn face, in cells.
            was: float32 [468, 3], of the target's face, in cells.
            zones: of the drawn face.
            keep_mouth: whether the inside of the target's mouth stays.
        """
        width, oval = zones.width, zones.crop(zones.oval)
        visible = lit.skin[0] & oval & lit.usable, lit.skin[1] & oval
        soft = lit.soft if not keep_mouth else zones.without_mouth(lit.soft)
        worn = spectacles.frame(calm.lab(lit.drawn), mesh, zones)
        removed = spectacles.frame(calm.lab(lit.under), was, zones)
        rims = np.zeros(soft.shape, np.float32)
        if worn is not None:
            rims = spectacles.rims(mesh, worn, width)
        face = lit.face + calm.calmed(lit, width, rims, visible)
        face += detail.matched(face, lit.under, width, visible)
        hole = heal.find(face, lit, soft, zones, (zones.brows(was, RECIPE.brow), removed))
        under = lit.under if hole is None else hole.healed(lit.under)
        bare = (visible[0] & visible[1]).astype(np.float32)
        meet = blurred(bare, _MEET * width) * bare
        band = second_band(face, under, soft, meet, RECIPE.band * width)
        return cls(Layers(lit.gain, lit.offset + face - lit.face, soft, band), hole)
