"""Head pose, from the 3-D mesh or from five points: how far a face is turned, nodded, tilted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from function.faces.face import Pose

if TYPE_CHECKING:
    from numpy.typing import NDArray

# image-left → image-right pairs of an upright face: outer eye corners, mouth corners, cheeks
_LEFT, _RIGHT = [33, 61, 234], [263, 291, 454]
_FOREHEAD, _CHIN = 10, 152
# the five points of a head that looks straight ahead, from meshes; x right, y down, z away
_HEAD = np.array(
    [[-0.50, -0.44, 0.15], [0.50, -0.44, 0.15], [0, -0.05, -0.51], [-0.47, 0.46, 0.10],
     [0.47, 0.46, 0.10]]
)  # fmt: skip
_TURNED, _TURNED_APART = 31.0, 30.0  # degrees; see docs/quality.md


def estimate(mesh: NDArray[np.float32]) -> Pose:
    """The pose of one face.

    Two axes are read off the mesh: across (the sum of three left-to-right pairs) and down (forehead
    to chin, which lie equally deep on a face that looks straight ahead). Roll is undone first, so
    yaw and pitch say the same about a face whether or not the photo is rotated.

    Args:
        mesh: float32 [468, 3], x to the right, y down, z away from the camera, one unit.

    Returns:
        Degrees; roll within ±180, yaw and pitch within ±90, or up to ±180 for a pitch that turns
        the head over.
    """
    across = (mesh[_RIGHT] - mesh[_LEFT]).sum(0).astype(np.float64)
    down = (mesh[_CHIN] - mesh[_FOREHEAD]).astype(np.float64)
    return _pose(across, down)


def of_five(five: NDArray[np.float32]) -> Pose:
    """The pose of a face of which only five points are known; good to about 10 degrees.

    A typical head is turned until its points, seen from far away, lie where these do: the rows of
    the best affine map, set at right angles, are those of the rotation.

    Args:
        five: float32 [5, 2], see `Face.five`.
    """
    centred = five.astype(np.float64) - five.mean(0)
    right, down = np.linalg.lstsq(_HEAD - _HEAD.mean(0), centred, rcond=None)[0].T
    right /= max(float(np.linalg.norm(right)), 1e-9)
    down -= right * (right @ down)
    down /= max(float(np.linalg.norm(down)), 1e-9)
    rotation = np.stack([right, down, np.cross(right, down)])
    return _pose(rotation[:, 0], rotation[:, 1])


def extreme(one: Pose, other: Pose) -> bool:
    """Whether one of two faces is turned, or they are turned apart, so far that a swap shows it."""
    apart = abs(one.yaw - other.yaw)
    return max(abs(one.yaw), abs(other.yaw)) > _TURNED or apart > _TURNED_APART


def _pose(across: NDArray[np.float64], down: NDArray[np.float64]) -> Pose:
    """The angles of a head whose axes, to its right side in the image and down, point there."""
    x, y, z = across
    level = float(np.hypot(x, y))
    roll = np.arctan2(y, x)
    yaw = np.arctan2(z, level)
    # `down` in the frame in which roll and yaw are undone
    cos, sin = np.cos(roll), np.sin(roll)
    depth = down[2] * np.cos(yaw) - (down[0] * cos + down[1] * sin) * np.sin(yaw)
    pitch = np.arctan2(depth, down[1] * cos - down[0] * sin)
    return Pose(*(float(np.degrees(angle)) for angle in (yaw, pitch, roll)))
