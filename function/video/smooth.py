"""The points of a face without the tremble that the landmark model has from frame to frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STILL_HZ = 1.5
"""What is kept of a face that does not move: changes slower than this."""
_PER_SPEED = 40.0
"""By how much more for each face width per second, so that a face that moves is not late."""
_SPEED_HZ = 1.0
"""Changes of speed that are believed."""


class Smooth:
    """A One-Euro filter (Casiez, Roussel and Vogel 2012) on each point, at any distance in time.

    Attributes:
        points: float32 [n, 3], as smoothed at last.
        speed: float32 [n, 3], face widths per second.
        at: seconds.
    """

    def __init__(
        self, points: NDArray[np.float32], at: float, speed: NDArray[np.float32] | None = None
    ) -> None:
        self.points, self.at = points, at
        self.speed = np.zeros_like(points) if speed is None else speed

    def follow(self, points: NDArray[np.float32], at: float) -> NDArray[np.float32]:
        """Take in the points of the next frame and smooth them.

        Args:
            points: float32 [n, 3] in pixels.
            at: when, in seconds; later than before.
        """
        passed = max(at - self.at, 1e-3)
        width = max(float(np.ptp(points[:, :2], 0).max()), 1.0)
        step = points - self.points
        self.speed += _share(_SPEED_HZ, passed) * (step / (width * passed) - self.speed)
        hertz = _STILL_HZ + _PER_SPEED * np.linalg.norm(self.speed, axis=1, keepdims=True)
        self.points = np.asarray(self.points + _share(hertz, passed) * step, np.float32)
        self.at = at
        return self.points


def _share(hertz: float | NDArray[np.floating], passed: float) -> NDArray[np.float32]:
    """How much of what is new a low pass of that frequency takes in after so many seconds."""
    turns = 2 * np.pi * np.asarray(hertz, np.float32) * passed
    return np.asarray(turns / (1 + turns), np.float32)
