"""Finding every face of a photo, whatever its size, crop and orientation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from function.faces.detect import CenterFace
    from function.faces.face import Detection


class Search:
    """Finds faces.

    Args:
        detector: makes one pass at one scale.
    """

    def __init__(self, detector: CenterFace) -> None:
        self._detector = detector

    def find(self, pixels: NDArray[np.uint8]) -> list[Detection]:
        """All faces, left to right.

        Args:
            pixels: uint8 [H, W, 3] RGB.

        Returns:
            By the x of the box's centre, then its y, then the higher score.
        """
        return in_order(self._detector.detect(pixels))


def in_order(detections: list[Detection]) -> list[Detection]:
    """The documented order: left to right by the box's centre, then top to bottom, then by score."""
    return sorted(detections, key=lambda found: (*found.box.center, -found.score))
