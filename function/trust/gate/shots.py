"""Which frames of a clip are looked at while it is made: one of each shot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


_CUT = 0.35
_BINS, _SMALL = 8, 64


def histogram(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """How often colours are in a picture, float32 [512], 1 in sum.

    Args:
        pixels: uint8 [H, W, 3].
    """
    step = max(1, min(pixels.shape[:2]) // _SMALL)
    few = np.ascontiguousarray(pixels[::step, ::step])
    counts = cv2.calcHist([few], [0, 1, 2], None, [_BINS] * 3, [0, 256] * 3).ravel()
    return np.asarray(counts / counts.sum(), np.float32)


def apart(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """How different two histograms are: 0 the same, 1 no colour in common."""
    return float(np.abs(one - other).sum()) / 2


class FrameSampler:
    """Says of frames, as they come in order, which are to be looked at.

    That is the first one, the one after each cut, and of a long shot one each time that so many
    frames have passed, or that so much has changed slowly. To find
    that out takes a fraction of a millisecond.

    Args:
        longest: of how many frames of one shot one at least is looked at.
    """

    def __init__(self, longest: int = 150) -> None:
        self._longest = longest
        self._looked: NDArray[np.float32] | None = None
        self._since = 0

    def wants(self, pixels: NDArray[np.uint8]) -> bool:
        """Whether to look at the next frame.

        Args:
            pixels: uint8 [H, W, 3].
        """
        found = histogram(pixels)
        self._since += 1
        same = self._looked is not None and apart(found, self._looked) < _CUT
        if same and self._since < self._longest:
            return False
        self._looked, self._since = found, 0
        return True
