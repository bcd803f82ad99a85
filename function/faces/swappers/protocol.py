"""The seam for every way to swap a face: the embedded mesh swap, and neural families."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from function.faces.face import Face, Fitted
    from function.faces.options import SwapOptions
    from function.images.picture import Picture
    from function.quality_warning import QualityWarning
    from function.telemetry.timings import Timings


@dataclass(frozen=True, slots=True)
class SourceFace:
    """The person to put in.

    Attributes:
        picture: the photo whose geometry and texture are used (the best-posed of several).
        face: that photo's face.
        embedding: float32 [n], the mean over all photos of the person.
    """

    picture: Picture
    face: Face
    embedding: NDArray[np.float32]


class Swapper(Protocol):
    """Replaces faces by others."""

    def reach(self, fitted: Fitted) -> NDArray[np.float32]:
        """Corners of all that may change for a face outside its detection and its mesh.

        Args:
            fitted: the face's points.

        Returns:
            float32 [n, 2], (x, y) in image pixels; perhaps none, and perhaps outside of the image.
        """
        ...

    def swap_all(
        self,
        canvas: NDArray[np.uint8],
        targets: Sequence[Face],
        sources: Sequence[SourceFace],
        options: SwapOptions,
        *,
        gray: bool,
        timings: Timings,
    ) -> list[tuple[QualityWarning, ...]]:
        """Replace each of `targets` on the canvas by the face of its source.

        Args:
            canvas: uint8 [H, W, 3] RGB, changed in place, only inside the boxes of the targets.
            targets: the faces to replace, analysed on the original photo.
            sources: the person to put in, for each target.
            options: how the result is to be.
            gray: the target photo is gray; the result must be gray too (R = G = B).
            timings: gets spans of what the swap consists of, named `swap.…`, if any.

        Returns:
            What may look wrong, for each target. Safe to call from several threads on different
            canvases.
        """
        ...
