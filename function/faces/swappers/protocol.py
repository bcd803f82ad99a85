"""The seam for every way to swap a face: the embedded mesh swap, and neural families."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from function.caution import Caution
    from function.faces.face import Face
    from function.images.picture import Picture


@dataclass(frozen=True, slots=True)
class Source:
    """The person to put in.

    Attributes:
        picture: the photo whose geometry and texture are used (the best-posed of several).
        face: that photo's face.
        embedding: float32 [128], the mean over all photos of the person.
    """

    picture: Picture
    face: Face
    embedding: NDArray[np.float32]


class Swapper(Protocol):
    """Replaces one face by another."""

    def swap(
        self, canvas: NDArray[np.uint8], target: Face, source: Source, *, gray: bool
    ) -> tuple[Caution, ...]:
        """Replace `target` on the canvas by the source's face.

        Args:
            canvas: uint8 [H, W, 3] RGB, changed in place, only inside `target.box`.
            target: the face to replace, analysed on the original photo.
            source: the person to put in.
            gray: the target photo is gray; the result must be gray too (R = G = B).

        Returns:
            What may look wrong. Safe to call from several threads on different canvases.
        """
        ...
