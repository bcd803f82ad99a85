"""Make the warped face fit the light of the target: its large-scale colour, not its details."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GAIN = (0.5, 2.4)
_CONTRAST = (0.8, 1.2)
_FLOOR = 12.0
"""Keeps the ratio of two dark colours quiet (levels of 0–255)."""
_TRACE = 1e-3
"""Weight of cells that do not count, for places where nothing near counts."""
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)


@dataclass(frozen=True, slots=True)
class Light:
    """The large-scale colour of the two faces, each as its own visible skin shows it.

    Attributes:
        source: float32 [h, w, 3] RGB 0–255, of the warped source.
        target: float32 [h, w, 3] RGB 0–255.
    """

    source: NDArray[np.float32]
    target: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        warped: NDArray[np.float32],
        target: NDArray[np.float32],
        skin: tuple[NDArray[np.bool_], NDArray[np.bool_]],
        sigma: float,
    ) -> Light:
        """Measure it.

        Args:
            warped: float32 [h, w, 3] RGB 0–255, the source's face on the grid.
            target: float32 [h, w, 3] RGB 0–255.
            skin: bool [h, w] each, the cells of `warped` and of `target` that count.
            sigma: of the blur, in cells.
        """
        return cls(_blur(warped, skin[0], sigma), _blur(target, skin[1], sigma))

    def toward(self, other: Light, share: NDArray[np.float32]) -> Light:
        """A mix: float32 [h, w] `share` of the other, 0–1."""
        weight = share[..., None]
        return Light(
            self.source + weight * (other.source - self.source),
            self.target + weight * (other.target - self.target),
        )

    def differs(
        self, warped: NDArray[np.float32], target: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """How far the relit source is from the target, the worst channel: float32 [h, w]."""
        rest = cv2.blur((warped - self.source) - (target - self.target), (3, 3))
        return np.asarray(np.abs(rest).max(2), np.float32)

    def correction(
        self,
        warped: NDArray[np.float32],
        target: NDArray[np.float32],
        weight: NDArray[np.float32],
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Gain and offset with which the source gets the target's light and contrast.

        The gain is the ratio of the two lights (light multiplies skin, so detail scales with it)
        within limits, times the ratio of the contrasts; the offset makes the means meet.

        Args:
            warped: float32 [h, w, 3] RGB 0–255.
            target: float32 [h, w, 3] RGB 0–255.
            weight: float32 [h, w], where to compare contrast.

        Returns:
            float32 [h, w, 3] each: corrected = gain · warped + offset.
        """
        ratio = (self.target + _FLOOR) / (self.source + _FLOOR)
        gain = np.asarray(np.clip(ratio, *_GAIN), np.float32)
        have = _deviation((warped - self.source) * gain, weight)
        want = _deviation(target - self.target, weight)
        gain *= np.float32(np.clip(want / max(have, 1e-3), *_CONTRAST))
        return gain, self.target - gain * self.source


def _deviation(detail: NDArray[np.float32], weight: NDArray[np.float32]) -> float:
    luma = detail @ _LUMA
    return float(np.sqrt((weight * luma * luma).sum() / max(float(weight.sum()), 1.0)))


def _blur(image: NDArray[np.float32], mask: NDArray[np.bool_], sigma: float) -> NDArray[np.float32]:
    """Gaussian mean of the cells in the mask, computed at a lower resolution that sigma allows."""
    height, width = mask.shape
    factor = max(1.0, sigma / 2.5)
    size = max(1, round(width / factor)), max(1, round(height / factor))
    weight = mask.astype(np.float32) + np.float32(_TRACE)
    both = cv2.resize(
        np.dstack([image * weight[..., None], weight]), size, interpolation=cv2.INTER_AREA
    )
    both = cv2.GaussianBlur(both, (0, 0), sigma / factor, borderType=cv2.BORDER_REPLICATE)
    mean = np.ascontiguousarray(both[..., :3] / both[..., 3:])
    return np.asarray(cv2.resize(mean, (width, height), interpolation=cv2.INTER_CUBIC), np.float32)
