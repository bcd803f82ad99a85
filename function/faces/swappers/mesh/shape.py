"""Where the points of the swapped face go: the target's place and pose, much of the source's build.

What makes a face somebody's is as much its shape as its skin. The outline must stay the target's,
or the result would not meet the neck and hair; inside of it the points move towards the source's
own mesh, turned into the target's pose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.topology import Topology

_SHARE = 0.7
"""How far an inner point moves from the target's place to the source's."""
_SHARE_TURNED, _TURNED = 0.55, (10, 25)
"""The same where the two are turned apart, reached between these degrees: depth is but guessed."""
_SHARE_MOUTH = 0.5
"""The same at the lips: less, because their shape is expression more than build."""
_REACH = 3
"""Mesh edges over which the share rises from the outline, and falls towards the lips."""
_GAPS = ([81, 13, 311], [178, 14, 402])  # inner edge of the upper and of the lower lip
_CORNERS = (78, 308)  # of the mouth


def blend(
    source: NDArray[np.float32],
    target: NDArray[np.float32],
    topology: Topology,
    keep_mouth: bool,
    turned: float = 0.0,
) -> NDArray[np.float32]:
    """The mesh of the swapped face, in the target's pixels.

    Args:
        source: float32 [468, 3].
        target: float32 [468, 3].
        topology: of the mesh.
        keep_mouth: leave the lips exactly where the target's are.
        turned: degrees by which the yaws of the two differ.

    Returns:
        float32 [468, 3].
    """
    inside = _rise(topology.from_oval)
    lips = 1 - _rise(topology.from_lips - 1)
    still = topology.from_lips > _REACH  # expression moves the rest
    most = float(np.interp(turned, _TURNED, (_SHARE, _SHARE_TURNED)))
    share = inside * (most + (_SHARE_MOUTH * (not keep_mouth) - most) * lips)
    moved = align(source, target, still) - target
    moved[:, 2] = 0
    return (target + share[:, None] * moved).astype(np.float32)


def align(
    source: NDArray[np.float32], target: NDArray[np.float32], where: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """`source` rotated, scaled and shifted onto `target` as well as the points `where` allow.

    Umeyama 1991, eq. 40–42, in three dimensions; float [468, 3] each.
    """
    a, b = source.astype(np.float64), target.astype(np.float64)
    a0, b0 = a[where].mean(0), b[where].mean(0)
    a, b = a - a0, b - b0
    u, s, vt = np.linalg.svd(b[where].T @ a[where])
    sign = np.array([1, 1, np.sign(np.linalg.det(u @ vt))])
    scale = (s * sign).sum() / max(float((a[where] ** 2).sum()), 1e-9)
    return np.asarray(scale * a @ ((u * sign) @ vt).T + b0)


def opening(mesh: NDArray[np.float32]) -> float:
    """How far the mouth is open: the gap between the lips over the width of the mouth."""
    gap = np.linalg.norm(mesh[_GAPS[0]] - mesh[_GAPS[1]], axis=1).mean()
    width = np.linalg.norm(mesh[_CORNERS[0]] - mesh[_CORNERS[1]])
    return float(gap / max(float(width), 1e-6))


def _rise(steps: NDArray[np.int32]) -> NDArray[np.float64]:
    """0 at no steps, smoothly up to 1 at `_REACH`."""
    t = np.clip(steps / _REACH, 0, 1)
    return np.asarray(t * t * (3 - 2 * t))
