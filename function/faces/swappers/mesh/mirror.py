"""Where a turned source hides half of its face, the other half shows what it looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from function.faces.swappers.mesh.blend import blurred
from function.faces.swappers.mesh.recipe import RECIPE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.face import Pose
    from function.faces.topology import Topology


def wanted(source: Pose, target: Pose) -> bool:
    """Whether the target shows a side of the face that the source turns away."""
    turned = abs(source.yaw) > RECIPE.mirror_yaw
    return turned and abs(source.yaw - target.yaw) > RECIPE.mirror_apart


def flipped(
    texture: NDArray[np.uint8], points: NDArray[np.float32], topology: Topology
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """A photo and its mesh as a mirror shows them: uint8 [H, W, 3] and float32 [468, 3]."""
    turned = points[topology.mirror]
    turned[:, 0] = texture.shape[1] - 1 - turned[:, 0]
    return np.ascontiguousarray(texture[:, ::-1]), turned


def share(
    own: NDArray[np.float32], other: NDArray[np.float32], width: float
) -> NDArray[np.float32]:
    """How much of each cell comes from the mirrored source, float32 [h, w], 0–1.

    Args:
        own: float32 [h, w], how much the source faces the camera there, see `Warp.facing`.
        other: float32 [h, w], how much the mirrored one does.
        width: of the face in cells.
    """
    better = (other - own - RECIPE.mirror_least) / RECIPE.mirror_range
    return blurred(np.clip(better, 0, 1).astype(np.float32), RECIPE.mirror_smooth * width)
