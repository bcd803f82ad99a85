"""The points of a face without the tremble that the landmark model has from frame to frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STILL_HZ = 0.5
"""What is kept of a face that does not move: changes slower than this."""
_PER_SPEED = 40.0
"""By how much more for each face width per second, so that a face that moves is not late."""
_TREMBLE = 0.05
"""Face widths per second that landmarks seem to move where nothing does."""
_SPEED_HZ = 1.0
"""Changes of speed that are believed."""


class Smooth:
    """A One-Euro filter (Casiez, Roussel and Vogel 2012) on each point, at any distance in time.

    Attributes:
        points: float32 [n, 3], as smoothed at last.
        speed: float32 [n, 3], face widths per second, of what is smoothed.
        at: seconds.
    """

    def __init__(
        self, points: NDArray[np.float32], at: float, speed: NDArray[np.float32] | None = None
    ) -> None:
        self.points, self.at = points, at
        self.speed = np.zeros_like(points) if speed is None else speed

    def follow(
        self,
        points: NDArray[np.float32],
        at: float,
        carried: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        """Take in the points of the next frame and smooth them.

        Args:
            points: float32 [n, 3] in pixels.
            at: when, in seconds; later than before.
            carried: float32 [n, 3], where the smoothed ones went with the picture; only what the
                new ones differ from that is smoothed. Where nobody knows, they stayed.
        """
        passed = max(at - self.at, 1e-3)
        width = max(float(np.ptp(points[:, :2], 0).max()), 1.0)
        origin = self.points if carried is None else carried
        step = points - origin
        self.speed += _share(_SPEED_HZ, passed) * (step / (width * passed) - self.speed)
        speed = np.linalg.norm(self.speed, axis=1, keepdims=True)
        hertz = _STILL_HZ + _PER_SPEED * np.maximum(speed - _TREMBLE, 0)
        self.points = np.asarray(origin + _share(hertz, passed) * step, np.float32)
        self.at = at
        return self.points


def _share(hertz: float | NDArray[np.floating], passed: float) -> NDArray[np.float32]:
    """How much of what is new a low pass of that frequency takes in after so many seconds."""
    turns = 2 * np.pi * np.asarray(hertz, np.float32) * passed
    return np.asarray(turns / (1 + turns), np.float32)
