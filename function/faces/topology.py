"""How the points of the face mesh hang together: its triangles and its named outlines."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

_FILE = "face_mesh_topology.json"
_SEED = (4, 1, 44)  # at the tip of the nose


@dataclass(frozen=True, slots=True)
class Topology:
    """The fixed structure of the 468-point mesh.

    Attributes:
        triangles: int32 [898, 3] point indices. All are wound alike: the signed area of a triangle
            that faces the camera is positive in an image (y down).
        oval: int32 [36], outline of the face, a closed loop.
        lips: int32 [20], inner edge of the lips, a closed loop that starts at the image-left corner
            and follows the upper lip first.
        soft: bool [898], the triangles in and around the openings of the mouth and the eyes: they
            fold and stretch with every expression.
        from_oval: int32 [468], how many edges lie between a point and the oval.
        from_lips: int32 [468], how many edges lie between a point and the inner edge of the lips.
    """

    triangles: NDArray[np.int32]
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
        triangles, oval, lips = data["triangles"], data["face_oval"], data["lips_inner"]
        openings = {*lips, *data["eye_right"], *data["eye_left"]}
        return cls(
            _wind_alike(triangles),
            np.array(oval, np.int32),
            np.array(lips, np.int32),
            np.array([not openings.isdisjoint(corners) for corners in triangles]),
            _steps(triangles, oval, data["points"]),
            _steps(triangles, lips, data["points"]),
        )


def _steps(
    triangles: Sequence[Sequence[int]], start: Iterable[int], count: int
) -> NDArray[np.int32]:
    """Edges between each point and the nearest of `start`."""
    neighbours: list[set[int]] = [set() for _ in range(count)]
    for corners in triangles:
        for corner in corners:
            neighbours[corner].update(corners)
    found = dict.fromkeys(start, 0)
    queue = deque(found)
    while queue:
        point = queue.popleft()
        for other in neighbours[point] - found.keys():
            found[other] = found[point] + 1
            queue.append(other)
    return np.array([found[point] for point in range(count)], np.int32)


def _wind_alike(triangles: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    """Order all corners as `_SEED` does: two neighbours run along their edge in opposite ways."""
    by_edge: dict[frozenset[int], list[int]] = {}
    for k, (a, b, c) in enumerate(triangles):
        for edge in ((a, b), (b, c), (c, a)):
            by_edge.setdefault(frozenset(edge), []).append(k)
    wound = {k: _SEED for k, corners in enumerate(triangles) if set(corners) == set(_SEED)}
    queue = deque(wound)
    while queue:
        a, b, c = wound[queue.popleft()]
        for u, v in ((a, b), (b, c), (c, a)):
            for k in by_edge[frozenset((u, v))]:
                if k not in wound:
                    (w,) = set(triangles[k]) - {u, v}
                    wound[k] = (v, u, w)
                    queue.append(k)
    return np.array([wound[k] for k in range(len(triangles))], np.int32)
