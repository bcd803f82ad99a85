"""How the points of the face mesh hang together: its triangles and its named outlines."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_T = TypeVar("_T", bound=np.generic)

_FILE = "face_mesh_topology.json"
_SEED = (4, 1, 44)  # at the tip of the nose


@dataclass(frozen=True, slots=True)
class Topology:
    """The fixed structure of the 468-point mesh; arrays are read-only.

    Attributes:
        triangles: int32 [898, 3] point indices. All are wound alike: in an image (y down) the signed
            area of a triangle that faces the camera is positive.
        oval: int32 [36], outline of the face, a closed loop.
        lips: int32 [20], inner edge of the lips, a closed loop from the image-left corner along
            the upper lip.
        eyes: two int32 [16] loops, image-left and image-right.
        soft: bool [898], the triangles in and around the openings of the mouth and the eyes: they
            fold and stretch with every expression.
    """

    triangles: NDArray[np.int32]
    oval: NDArray[np.int32]
    lips: NDArray[np.int32]
    eyes: tuple[NDArray[np.int32], NDArray[np.int32]]
    soft: NDArray[np.bool_]

    @classmethod
    def load(cls) -> Topology:
        """The embedded topology."""
        text = resources.files("function").joinpath("models", _FILE).read_text(encoding="utf-8")
        data: dict[str, Any] = json.loads(text)
        triangles = _wind_alike(data["triangles"])
        lips, right, left = data["lips_inner"], data["eye_right"], data["eye_left"]
        soft = np.isin(triangles, [*lips, *right, *left]).any(1)
        return cls(
            _frozen(triangles),
            _frozen(np.array(data["face_oval"], np.int32)),
            _frozen(np.array(lips, np.int32)),
            (_frozen(np.array(right, np.int32)), _frozen(np.array(left, np.int32))),
            _frozen(soft),
        )


def _frozen(array: NDArray[_T]) -> NDArray[_T]:
    """Make an array read-only."""
    array.setflags(write=False)
    return array


def _wind_alike(triangles: list[list[int]]) -> NDArray[np.int32]:
    """Order the corners of all triangles as those of `_SEED`: neighbours cross an edge oppositely."""
    by_edge: dict[frozenset[int], list[int]] = {}
    for k, (a, b, c) in enumerate(triangles):
        for edge in ((a, b), (b, c), (c, a)):
            by_edge.setdefault(frozenset(edge), []).append(k)
    wound: dict[int, tuple[int, int, int]] = {triangles.index(sorted(_SEED)): _SEED}
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
