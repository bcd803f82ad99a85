"""Head pose from the 3-D mesh: how far a face is turned, nodded and tilted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from function.faces.face import Pose

if TYPE_CHECKING:
    from numpy.typing import NDArray

# image-left → image-right pairs of an upright face: outer eye corners, mouth corners, cheeks
_LEFT, _RIGHT = [33, 61, 234], [263, 291, 454]
_FOREHEAD, _CHIN = 10, 152


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
    x, y, z = across
    level = float(np.hypot(x, y))
    roll = np.arctan2(y, x)
    yaw = np.arctan2(z, level)
    # `down` in the frame in which roll and yaw are undone
    cos, sin = np.cos(roll), np.sin(roll)
    depth = down[2] * np.cos(yaw) - (down[0] * cos + down[1] * sin) * np.sin(yaw)
    pitch = np.arctan2(depth, down[1] * cos - down[0] * sin)
    return Pose(*(float(np.degrees(angle)) for angle in (yaw, pitch, roll)))
