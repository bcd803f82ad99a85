"""The decoded photo that everything else works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from function.quality_warning import QualityWarning


@dataclass(frozen=True, slots=True)
class Picture:
    """One decoded image, upright and in sRGB.

    Attributes:
        pixels: uint8 [H, W, 3], RGB, EXIF orientation applied. Not premultiplied by alpha.
        alpha: uint8 [H, W], or None when the image has no transparency.
        gray: True when the photo has no colour (one channel in the file, or three that are equal
            everywhere); the result should stay gray.
        format: what the file was, in lower case: "jpeg", "png", …
        warnings: what decoding had to leave out.
    """

    pixels: NDArray[np.uint8]
    alpha: NDArray[np.uint8] | None = None
    gray: bool = False
    format: str = "jpeg"
    warnings: tuple[QualityWarning, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.pixels.shape[1], self.pixels.shape[0]
