"""Make the warped face fit the light of the target: its large-scale colour, not its details."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BALANCE = (0.03, 8.0)  # limits of the gain between two photos
_GAIN = (0.5, 2.4)  # limits of what a place may differ from it
_CONTRAST = (0.8, 1.2)
_FLOOR = 0.07
"""Keeps the ratio of two dark colours quiet (of the target's mean level)."""
CLIPPED = 250.0  # level
_DARK = 16.0  # mean level below which the steps between levels show
_CLIPS = (240.0, 254.0)  # from no sign of clipping to a sure one, for the mean of a cell
_HEADROOM = 1.2
"""What is clipped is taken to be at most this much brighter than white."""
_FREE = 0.1  # share of unclipped cells at which their colour counts as much as the brightness
_TRACE = 1e-3
"""Weight of cells that do not count, for places where nothing near counts."""
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)


@dataclass(frozen=True, slots=True)
class Light:
    """The large-scale colour of the two faces, each as its own visible skin shows it.

    Attributes:
        source: float32 [h, w, 3] RGB 0–255, of the warped source, balanced (see `balance`).
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
            warped: float32 [h, w, 3] RGB 0–255, the source's face on the grid, balanced.
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
        """How far the relit source is from the target, the worst channel: float32 [h, w].

        As a share of the target's mean level.
        """
        rest = cv2.blur((warped - self.source) - (target - self.target), (3, 3))
        return np.asarray(_most(np.abs(rest)) / self._level(), np.float32)

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
        floor = np.float32(_FLOOR * self._level())
        ratio = (self.target + floor) / (self.source + floor)
        gain = np.asarray(np.clip(ratio, *_GAIN), np.float32)
        have = _deviation((warped - self.source) * gain, weight)
        want = _deviation(target - self.target, weight)
        gain *= np.float32(np.clip(want / max(have, 1e-3), *_CONTRAST))
        return gain, self.target - gain * self.source

    def _level(self) -> float:
        return max(float(self.target.mean()), 1.0)


def balance(
    warped: NDArray[np.float32], target: NDArray[np.float32], where: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """The gain of each channel that takes the source to the light of the target as a whole.

    A clipped channel tells nothing about the colour of the light: only cells that are clipped in
    neither photo do. Where these are few the gain is the same for all channels.

    Args:
        warped: float32 [h, w, 3] RGB 0–255.
        target: float32 [h, w, 3] RGB 0–255.
        where: bool [h, w], the cells that count.

    Returns:
        float32 [3].
    """
    if not where.any():
        return np.ones(3, np.float32)
    have, want = warped[where], target[where]
    gain = _ratio(want @ _LUMA, have @ _LUMA)
    free = _most(np.maximum(have, want)) < CLIPPED
    if free.any():
        share = free.mean()
        weight = share / (share + _FREE) * (1 + _FREE)
        gain = gain + weight * (_ratio(want[free], have[free]) - gain)
    return np.asarray(np.broadcast_to(np.clip(gain, *_BALANCE), 3), np.float32)


def unclipped(
    image: NDArray[np.float32], other: NDArray[np.float32], white: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The image with what is clipped as bright as the other photo's light makes it.

    Args:
        image: float32 [h, w, 3] RGB.
        other: float32 [h, w, 3] RGB, the smooth light of the other photo in this one's levels.
        white: float32 [3], where the image clips.

    Returns:
        float32 [h, w, 3], nowhere darker than the image.
    """
    low, high = (np.float32(level / 255) * white for level in _CLIPS)
    sure = np.clip((image - low) / (high - low), 0, 1)
    return np.asarray(image + sure * np.clip(other - image, 0, (_HEADROOM - 1) * white), np.float32)


def clipped(image: NDArray[np.float32]) -> NDArray[np.bool_]:
    """The cells in which a channel has reached white; bool [h, w] of float32 [h, w, 3] RGB."""
    return np.asarray(_most(image) > CLIPPED)


def overexposure(image: NDArray[np.float32], where: NDArray[np.bool_]) -> float:
    """The share of the cells of `where`, bool [h, w], clipped in the image float32 [h, w, 3]."""
    return float(clipped(image)[where].mean()) if where.any() else 0.0


def too_dark(image: NDArray[np.float32], where: NDArray[np.bool_]) -> bool:
    """Whether so few levels of the image float32 [h, w, 3] are used that it shows."""
    return bool(where.any() and (image[where] @ _LUMA).mean() < _DARK)


def _most(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """The largest channel of [..., 3]; numpy's own is slow along so short an axis."""
    return np.maximum(np.maximum(image[..., 0], image[..., 1]), image[..., 2])


def _ratio(want: NDArray[np.float32], have: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(want.mean(0) / np.maximum(have.mean(0), 0.5), np.float32)


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
