"""The geometry of a head that nobody has: the face mesh with another build, closed to a head."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.topology import Topology

    Points = NDArray[np.floating]
    Triangles = NDArray[np.int32]

_RINGS = 14
"""Between the outline of the face and the back of the head."""
# middle (x, y, z behind the outline of the face), radii, whether it is cloth: ears, neck, shoulders
_BALLS = [
    ((-0.53, 0.02, 0.28), (0.05, 0.14, 0.09), 0.0),
    ((0.53, 0.02, 0.28), (0.05, 0.14, 0.09), 0.0),
    ((0.0, 0.75, 0.35), (0.33, 0.9, 0.3), 0.0),
    ((0.0, 1.5, 0.4), (1.25, 0.55, 0.5), 1.0),
]


@dataclass(frozen=True, slots=True)
class Body:
    """A closed mesh.

    Attributes:
        points: float [n, 3], x right, y down, z away; the face is 1 wide.
        triangles: int32 [m, 3], wound like those of the face mesh.
        uv: float [n, 2], their places on the skin, as seen from the front.
        other: float [n, 1], 1 where it is not skin but hair or cloth.
        colour: float [n, 3], linear, of that.
    """

    points: Points
    triangles: Triangles
    uv: Points
    other: Points
    colour: Points

    def normals(self) -> Points:
        """Of the surface at every point, float [n, 3], outward."""
        a, b, c = (self.points[self.triangles[:, k]] for k in range(3))
        flat = -np.cross(b - a, c - a)
        found = np.zeros_like(self.points)
        for k in range(3):
            np.add.at(found, self.triangles[:, k], flat)
        return np.asarray(found / (np.linalg.norm(found, axis=1, keepdims=True) + 1e-9))


def front(mesh: NDArray[np.float32]) -> Points:
    """A mesh float32 [468, 3] turned to look ahead: middle 0, width of the face 1."""
    across = (mesh[[263, 291, 454]] - mesh[[33, 61, 234]]).sum(0).astype(float)
    down = (mesh[152] - mesh[10]).astype(float)
    x = across / np.linalg.norm(across)
    y = down - x * (x @ down)
    y /= np.linalg.norm(y)
    points = (mesh - mesh.mean(0)) @ np.stack([x, y, np.cross(x, y)]).T
    return np.asarray(points / np.ptp(points[:, 0]))


def build(base: Points, rng: np.random.Generator, smile: float) -> Points:
    """Somebody else's face: wider or longer, and bumps that are the same on both sides.

    Args:
        base: a mesh as `front` gives it.
        rng: decides which.
        smile: 0–1, how far the mouth is open.
    """
    face = base * (1 + 0.05 * rng.normal(size=3).clip(-1.5, 1.5))
    for centre in face[rng.choice(len(face), 14)]:
        moved = rng.normal(size=3) * 0.017
        for mirror in (np.array([1, 1, 1]), np.array([-1, 1, 1])):
            near = np.exp(-((face - centre * mirror) ** 2).sum(1) / (2 * 0.13**2))
            face = face + near[:, None] * moved * mirror
    line = face[[61, 291], 1].mean()
    below = np.clip((face[:, 1] - line) / 0.02, 0, 1) * np.exp(-((face[:, 0] / 0.24) ** 2))
    face[:, 1] += 0.11 * smile * below
    return np.asarray(face)


def closed(face: Points, topology: Topology, hair: Points, cloth: Points) -> Body:
    """The face with the rest of the head, ears, neck and shoulders.

    Args:
        face: float [468, 3], see `build`.
        topology: of the face mesh.
        hair: its linear colour.
        cloth: of the shoulders.
    """
    oval = face[topology.oval]
    depth = float(oval[:, 2].mean())
    top = topology.oval[oval[:, 1] < -0.3]
    hairline = np.clip((face[10, 1] + 0.07 - face[:, 1]) / 0.1, 0, 1)
    hairline[top] = 1
    parts = [(face, face[:, :2], hairline), *_shell(oval, depth)]
    triangles = [topology.triangles, *_strips(topology.oval, len(face))]
    colours = [np.tile(hair, (sum(len(points) for points, *_ in parts), 1))]
    ball, facets = _ball()
    for middle, radii, is_cloth in _BALLS:
        triangles.append(facets + sum(len(points) for points, *_ in parts))
        placed = ball * radii + middle + np.array([0, 0, depth])
        parts.append((placed, ball[:, :2] * 0.3 + [0, 0.62], np.full(len(ball), is_cloth)))
        colours.append(np.tile(cloth, (len(ball), 1)))
    points, uv, other = (np.concatenate(each) for each in zip(*parts, strict=True))
    every = np.concatenate(triangles).astype(np.int32)
    return Body(points, every, uv, other[:, None], np.concatenate(colours))


def _shell(oval: Points, depth: float) -> list[tuple[Points, Points, Points]]:
    """Rings from the outline to the back of the head: points, places on the skin, hair."""
    centre = np.array([0, -0.1, depth + 0.3])
    away = oval - centre
    radius = np.linalg.norm(away, axis=1, keepdims=True)
    back = np.array([0, 0, 1.0])
    theta = np.arccos(away @ back / radius[:, 0])[:, None]
    flat = away - (away @ back)[:, None] * back
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    rings = []
    for ring in range(1, _RINGS + 1):
        t = ring / _RINGS
        hair = np.clip((0.12 + 0.5 * t - oval[:, 1:2]) / 0.15, 0, 1)
        far = radius + (0.66 - radius) * t * (2 - t) + 0.07 * hair
        angle = theta * (1 - t)
        points = centre + far * (np.sin(angle) * flat + np.cos(angle) * back)
        rings.append((points, oval[:, :2] * (1 + 0.1 * ring), hair[:, 0]))
    return rings


def _strips(oval: Triangles, size: int) -> list[Triangles]:
    """The triangles between one ring and the next, of which the first is the outline."""
    step = np.arange(len(oval))
    loops = [oval, *(size + len(oval) * ring + step for ring in range(_RINGS))]
    found = []
    for inner, outer in pairwise(loops):
        inner_next, outer_next = np.roll(inner, -1), np.roll(outer, -1)
        found.append(np.stack([inner, outer, inner_next], 1))
        found.append(np.stack([inner_next, outer, outer_next], 1))
    return found


def _ball() -> tuple[Points, Triangles]:
    """A sphere: points, and triangles that face outward."""
    down, around = 16, 24
    theta = np.linspace(0, np.pi, down)[:, None]
    phi = np.linspace(0, 2 * np.pi, around, endpoint=False)[None]
    rings = [np.sin(theta) * np.cos(phi), np.cos(theta) + 0 * phi, np.sin(theta) * np.sin(phi)]
    row, column = np.mgrid[: down - 1, :around].reshape(2, -1)
    a, b = row * around + column, row * around + (column + 1) % around
    upper, lower = np.stack([a, a + around, b], 1), np.stack([b, a + around, b + around], 1)
    return np.stack(rings, 2).reshape(-1, 3), np.concatenate([upper, lower]).astype(np.int32)
