"""How the points of the face mesh hang together: its triangles and its named outlines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_FILE = "face_mesh_topology.json"


@dataclass(frozen=True, slots=True)
class Topology:
    """The fixed structure of the 468-point mesh.

    Attributes:
        triangles: int32 [898, 3] point indices. All are wound alike: the signed area of a triangle
            that faces the camera is positive in an image (y down).
        ring: int32 [72, 3], triangles around the oval, wound alike: point 468 + k lies outside of
            the k-th of the oval; see `outward`.
        oval: int32 [36], outline of the face, a closed loop.
        lips: int32 [20], inner edge of the lips, a closed loop that starts at the image-left corner
            and follows the upper lip first.
        soft: bool [898], the triangles in and around the openings of the mouth and the eyes: they
            fold and stretch with every expression.
        from_oval: int32 [468], how many edges lie between a point and the oval.
        from_lips: int32 [468], how many edges lie between a point and the inner edge of the lips.
    """

    triangles: NDArray[np.int32]
    ring: NDArray[np.int32]
    oval: NDArray[np.int32]
    lips: NDArray[np.int32]
    soft: NDArray[np.bool_]
    from_oval: NDArray[np.int32]
    from_lips: NDArray[np.int32]

    @classmethod
    def load(cls) -> Topology:
        """The embedded topology."""
        text = resources.files("function").joinpath("models", _FILE).read_text(encoding="utf-8")
        data: dict[str, Any] = json.loads(text)
        triangles = np.array(data["triangles"], np.int32)
        oval, lips = data["face_oval"], data["lips_inner"]
        openings = [*lips, *data["eye_right"], *data["eye_left"]]
        return cls(
            triangles,
            _ring(oval, data["points"]),
            np.array(oval, np.int32),
            np.array(lips, np.int32),
            np.asarray(np.isin(triangles, openings).any(1)),
            _steps(triangles, oval, data["points"]),
            _steps(triangles, lips, data["points"]),
        )

    def outward(self, mesh: NDArray[np.float32], push: float) -> NDArray[np.float32]:
        """The mesh continued outside of its oval, where it has no points: float32 [504, 3].

        Args:
            mesh: float32 [468, 3].
            push: distance of the new points from the middle of the oval, as a multiple of its own;
                they lie behind all others.
        """
        rim = mesh[self.oval]
        middle = rim.mean(0)
        outer = middle + push * (rim - middle)
        outer[:, 2] = mesh[:, 2].max() + np.ptp(mesh[:, 2])
        return np.concatenate([mesh, outer]).astype(np.float32)


def _ring(oval: Sequence[int], count: int) -> NDArray[np.int32]:
    """Two triangles between each edge of the oval and that of the points outside of it."""
    first = np.array(oval)
    outer = count + np.arange(len(first))
    after, outer_after = np.roll(first, -1), np.roll(outer, -1)
    inner = np.stack([after, first, outer], 1)
    return np.concatenate([inner, np.stack([after, outer, outer_after], 1)]).astype(np.int32)


def _steps(triangles: NDArray[np.int32], start: Sequence[int], count: int) -> NDArray[np.int32]:
    """Edges between each point and the nearest of `start`."""
    after = np.roll(triangles, 1, axis=1)
    ends, others = np.stack([[triangles, after], [after, triangles]]).reshape(2, -1)
    found = np.full(count, count, np.int32)
    found[np.asarray(start)] = 0
    for steps in range(1, count):
        reached = (found[ends] == steps - 1) & (found[others] > steps)
        if not reached.any():
            break
        found[others[reached]] = steps
    return found
