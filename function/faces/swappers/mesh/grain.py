"""Film grain and sensor noise: a smooth patch in a grainy photo is what gives a montage away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.geometry import median

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIDE = 256
_SHARE = 0.3  # of what is missing: most of what is measured is wrinkles and pores
_SMALL = 64  # pixels: faces so narrow show no grain, only eyes and lips; twice as wide all of it
_LIMIT = 6.0  # levels
_LINES = 128  # that are measured, at least, where there are as many


class Grain:
    """A fixed tile of noise, made once and never changed."""

    def __init__(self) -> None:
        noise = np.empty((_SIDE, _SIDE), np.float32)
        cv2.setRNGSeed(2)  # numpy's generators would cost 20 ms of every start
        cv2.randn(noise, 0, 1)
        noise = cv2.GaussianBlur(noise, (0, 0), 0.8, borderType=cv2.BORDER_REFLECT)
        noise -= cv2.GaussianBlur(noise, (0, 0), 2.0, borderType=cv2.BORDER_REFLECT)
        self._tile = (noise / _second(noise)).astype(np.float32)

    def missing(self, have: float, want: float, width: int) -> Noise | None:
        """Noise that takes a patch of roughness `have` towards `want`; see `roughness`.

        Args:
            have: measured on the face.
            want: measured where it is put.
            width: of the region of a face in pixels.

        Returns:
            None when nothing is missing.
        """
        if want <= have or width <= _SMALL:
            return None
        level = min(1, width / _SMALL - 1) * min(_SHARE * float(np.sqrt(want**2 - have**2)), _LIMIT)
        return Noise(self._tile * np.float32(level))


@dataclass(frozen=True, slots=True)
class Noise:
    """A tile of noise, float32 [256, 256] in levels, that repeats for ever."""

    tile: NDArray[np.float32]

    def rows(self, rows: slice, width: int) -> NDArray[np.float32]:
        """Some rows of it, float32 [n, width]."""
        down = np.arange(rows.start, rows.stop) % _SIDE
        return np.asarray(np.tile(self.tile[down], (1, -(-width // _SIDE)))[:, :width])


def roughness(image: NDArray[np.uint8]) -> float:
    """Typical difference of a pixel's luminance from its neighbours'; robust against edges.

    Args:
        image: uint8 [h, w, 3] RGB.
    """
    down, across = (max(2, side // _LINES) for side in image.shape[:2])
    return (_second(_gray(image[::down])) + _second(_gray(image[:, ::across]).T)) / 2


def _gray(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.asarray(cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY), np.uint8)


def _second(gray: NDArray[np.number]) -> float:
    """Median of the second difference along rows, at the scale of grain; [h, w]."""
    if min(gray.shape) < 1 or gray.shape[1] < 5:
        return 0.0
    line = gray.astype(np.float32)
    return float(median(np.abs(line[:, 2:-2] - (line[:, :-4] + line[:, 4:]) / 2)))
