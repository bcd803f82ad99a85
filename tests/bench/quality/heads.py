"""Heads that nobody has: rendered from the face mesh, in a known light, with a skin made of noise.

The mesh of one photo is turned to the front, changed in build, closed to a head with neck and hair,
and painted. A seed decides everything and the light is exact, so that of the same head a photo in
any light and from any side is known: what a swap of it onto itself must give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.topology import Topology
from tests.bench.quality.body import build, closed
from tests.bench.quality.skin import EYES, TONES, Skin, linear

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tests.bench.quality.body import Points, Triangles

    Pixels = NDArray[np.uint8]

_CLOTH = (60, 70, 96)
_FRAME = (38, 26, 22)
_SCALE = 0.42
"""Width of a face in a picture."""
_FINER = 1.5
"""It is drawn so much larger than it is wanted."""


@dataclass(frozen=True, slots=True)
class Head:
    """How a head looks.

    Attributes:
        seed: of its build and its skin.
        tone: of the skin, a place in `TONES`.
        age: 0 (smooth) to 1 (wrinkles).
        hair: sRGB.
        beard, paint: whether it has a beard, make-up.
        spectacles, hand: whether it has spectacles, fingers before the chin.
        smile: 0–1, how far the mouth is open.
        yaw, pitch: how far it is turned to the image's right and down, degrees.
        light: where it comes from (x right, y down, z away).
        ambient: light from everywhere, as a share of that.
        colour: of the light, linear RGB.
        size: of the picture in pixels.
    """

    seed: int
    tone: int = 1
    age: float = 0.3
    hair: tuple[int, int, int] = (70, 48, 34)
    beard: bool = False
    paint: bool = False
    spectacles: bool = False
    hand: bool = False
    smile: float = 0.0
    yaw: float = 0.0
    pitch: float = 0.0
    light: tuple[float, float, float] = (-0.4, -0.5, -0.8)
    ambient: float = 0.35
    colour: tuple[float, float, float] = (1.0, 1.0, 1.0)
    size: int = 560


def render(head: Head, base: Points) -> Pixels:
    """The head before a plain wall, uint8 [size, size, 3] RGB.

    Args:
        head: how it looks.
        base: a mesh as `body.front` gives it.
    """
    rng = np.random.default_rng(head.seed)
    side = round(_FINER * head.size)
    face = build(base, rng, head.smile)
    turn = _turn(head.yaw, head.pitch)
    image = _shaded(head, face, turn, side, rng) * np.array(head.colour)
    canvas = (np.clip(image, 0, 1) ** (1 / 2.2) * 255).astype(np.float32)
    if head.spectacles:
        _spectacles(canvas, face, turn)
    if head.hand:
        chin = _placed(face[152], turn, side)[:2]
        _fingers(canvas, chin, linear(TONES[head.tone]) * head.colour)
    small = cv2.resize(canvas, (head.size, head.size), interpolation=cv2.INTER_AREA)
    small += rng.normal(size=small.shape) * 1.5
    return np.asarray(np.clip(small, 0, 255).round(), np.uint8)


def _shaded(head: Head, face: Points, turn: Points, side: int, rng: np.random.Generator) -> Points:
    """Linear light of head and wall, float [side, side, 3]."""
    skin = Skin(face, head, rng)
    body = closed(face, Topology.load(), linear(head.hair), linear(_CLOTH))
    which, weights = _raster(_placed(body.points, turn, side), body.triangles, side)
    corners = body.triangles[which]

    def spread(values: Points) -> Points:
        few = values.astype(np.float32)
        return np.asarray(sum(few[corners[..., k]] * weights[..., k, None] for k in range(3)))

    normal = spread(body.normals() @ turn.T)
    normal /= np.linalg.norm(normal, axis=2, keepdims=True) + 1e-9
    places = spread(body.uv)
    other = np.clip(spread(body.other) * 3 - 1, 0, 1)
    strands = 0.6 + 0.8 * skin.strands(places)[..., None]
    albedo = skin.at(places) * (1 - other) + spread(body.colour) * strands * other
    light = np.array(head.light) / np.linalg.norm(head.light)
    half = light + np.array([0, 0, -1.0])
    lit = np.clip(normal @ light, 0, 1)[..., None]
    gloss = np.clip(normal @ (half / np.linalg.norm(half)), 0, 1)[..., None] ** 24 * 0.05
    sky = 0.75 - 0.25 * normal[..., 1:2]
    seen = albedo * (head.ambient * sky + lit) + gloss * (lit > 0)
    return np.where((which >= 0)[..., None], seen, _wall(side, rng) * (head.ambient + 0.4))


def _placed(points: Points, turn: Points, side: int) -> Points:
    """Points of a body in pixels of a picture, float [n, 3]."""
    return np.asarray(points @ turn.T * (_SCALE * side) + np.array([side / 2, side / 2, 0]))


def _turn(yaw: float, pitch: float) -> Points:
    """The rotation of a head, float [3, 3]."""
    a, b = np.radians(yaw), np.radians(pitch)
    across = np.array([[np.cos(a), 0, -np.sin(a)], [0, 1, 0], [np.sin(a), 0, np.cos(a)]])
    down = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    return np.asarray(down @ across)


def _raster(place: Points, triangles: Triangles, side: int) -> tuple[Triangles, Points]:
    """Which triangle each pixel shows (-1: none), and the weights of its corners."""
    which = np.full((side, side), -1, np.int32)
    weights, depth = np.zeros((side, side, 3), np.float32), np.full((side, side), np.inf)
    for number, corners in enumerate(place[triangles]):
        low = np.maximum(np.floor(corners[:, :2].min(0)).astype(int), 0)
        high = np.minimum(np.ceil(corners[:, :2].max(0)).astype(int) + 1, side)
        (ax, ay), (bx, by), (cx, cy) = corners[:, :2]
        area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
        if (high <= low).any() or abs(area) < 1e-9:
            continue
        x, y = np.arange(low[0], high[0])[None], np.arange(low[1], high[1])[:, None]
        v = ((x - ax) * (cy - ay) - (cx - ax) * (y - ay)) / area
        w = ((bx - ax) * (y - ay) - (x - ax) * (by - ay)) / area
        share = np.stack([1 - v - w, v, w], 2)
        z = share @ corners[:, 2]
        window = slice(low[1], high[1]), slice(low[0], high[0])
        front = (share.min(2) >= -1e-9) & (z < depth[window])
        depth[window][front] = z[front]
        which[window][front], weights[window][front] = number, share[front]
    return which, weights


def _wall(side: int, rng: np.random.Generator) -> Points:
    """A plain wall, a little uneven."""
    uneven = cv2.resize(rng.normal(size=(5, 5)), (side, side), interpolation=cv2.INTER_CUBIC)
    colour = linear(rng.uniform(110, 190) + rng.uniform(-20, 20, 3))
    return np.asarray(colour * (1 + 0.08 * uneven)[..., None])


def _spectacles(canvas: Points, face: Points, turn: Points) -> None:
    """Two rims, a bridge and temples, with a shadow; drawn on the canvas."""
    side = len(canvas)
    angle = np.linspace(0, 2 * np.pi, 40)[:, None]
    rim = np.concatenate([0.165 * np.cos(angle), 0.12 * np.sin(angle), 0 * angle], 1)
    left, right = (face[eye].mean(0) + np.array([0, 0.01, -0.09]) for eye in EYES)
    lines = [left + rim, right + rim]
    lines.append(np.stack([left + np.array([0.16, -0.03, 0]), right - np.array([0.16, 0.03, 0])]))
    for middle, way in ((left, -1), (right, 1)):
        lines.append(
            np.stack(
                [middle + np.array([way * 0.16, -0.03, 0]), [way * 0.53, -0.08, left[2] + 0.6]]
            )
        )
    for line in lines:
        flat = _placed(line, turn, side)[:, :2]
        for shift, width, soft in ((3, 11, 2.5), (0, 8, 0.8)):
            mask = np.zeros((side, side), np.float32)
            fine = [np.round((flat + shift) * 8).astype(np.int32)]
            cv2.polylines(mask, fine, False, 1.0, width, cv2.LINE_AA, 3)
            mask = cv2.GaussianBlur(mask, (0, 0), soft)[..., None]
            colour = 0.75 * canvas if shift else np.array(_FRAME, np.float32)
            canvas += mask * (colour - canvas)


def _fingers(canvas: Points, chin: Points, skin: Points) -> None:
    """Four fingers before the mouth and the chin; drawn on the canvas."""
    side = len(canvas)
    width, thick = _SCALE * side, 0.058 * _SCALE * side
    y, x = np.mgrid[:side, :side]
    for k in range(4):
        tip = chin + np.array([-0.28 + 0.11 * k, -0.32 - 0.04 * (k % 3)]) * width
        root = chin + np.array([-0.5 + 0.13 * k, 0.35]) * width
        long = float(np.linalg.norm(root - tip))
        along = (root - tip) / long
        far = np.clip((x - tip[0]) * along[0] + (y - tip[1]) * along[1], 0, long)
        beside = np.hypot(x - tip[0] - far * along[0], y - tip[1] - far * along[1]) / thick
        mask = np.clip((1 - beside) * thick / 2, 0, 1)[..., None]
        lit = 0.35 + 0.65 * np.sqrt(np.clip(1 - beside**2, 0, 1))[..., None]
        colour = np.clip(skin * lit, 0, 1) ** (1 / 2.2) * 255
        canvas += (mask * (colour - canvas)).astype(np.float32)
