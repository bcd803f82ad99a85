"""Pictures that are made lawfully: by formulas, and from the public-domain photos that are here.

Skin-coloured shapes, statues, beaches with figures of ellipses, clouds of colour, pages of text;
and parts of the photos, mirrored, turned upside down and in other light. Nobody is undressed in
any of them. A seed decides everything.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]
    Rng = np.random.Generator

ROOT = Path(__file__).parent.parent
PHOTOS = (
    "tests/photos/astronaut.png",
    "tests/photos/grace_hopper.jpg",
    "function/samples/collins.jpg",
    "function/samples/hopper.jpg",
    "keepalive/photos/source.jpg",
    "keepalive/photos/target.jpg",
)
SKIN = [
    (255, 224, 196),
    (240, 194, 160),
    (224, 172, 105),
    (198, 134, 66),
    (141, 85, 36),
    (90, 56, 37),
]
SIDE = 320


@cache
def photo(name: str) -> Pixels:
    """A photo of the repository, uint8 [H, W, 3] RGB."""
    return np.asarray(Image.open(ROOT / name).convert("RGB"))


def clouds(rng: Rng, octaves: int = 5) -> NDArray[np.float64]:
    """Soft noise [SIDE, SIDE, 1] from 0 to 1."""
    found = np.zeros((SIDE, SIDE))
    for octave in range(octaves):
        grid = rng.normal(size=(2 ** (octave + 1),) * 2)
        size = (SIDE, SIDE)
        found += cv2.resize(grid, size, interpolation=cv2.INTER_CUBIC) / 1.6**octave
    return ((found - found.min()) / (np.ptp(found) + 1e-9))[..., None]


def shapes(rng: Rng) -> Pixels:
    """Rounded shapes of one skin colour, shaded, in front of something."""
    colours, veil = rng.uniform(0, 255, (2, 3)), clouds(rng)
    image = colours[0] * veil + colours[1] * (1 - veil)
    skin = np.asarray(SKIN[rng.integers(len(SKIN))], float)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    for _ in range(rng.integers(2, 9)):
        x, y = rng.uniform(0, SIDE, 2)
        long = rng.uniform(0.06, 0.4) * SIDE
        short, turn = long * rng.uniform(0.3, 1), rng.uniform(0, np.pi)
        along = (columns - x) * np.cos(turn) + (rows - y) * np.sin(turn)
        across = (rows - y) * np.cos(turn) - (columns - x) * np.sin(turn)
        depth = 1 - (along / long) ** 2 - (across / short) ** 2
        mask = np.clip(depth * 8, 0, 1)[..., None]
        light = 0.55 + 0.5 * np.sqrt(np.clip(depth, 0, 1)) * (0.8 + 0.2 * np.cos(turn))
        image = image * (1 - mask) + np.clip(skin * light[..., None], 0, 255) * mask
    return _pixels(image + rng.normal(size=image.shape) * rng.uniform(0, 6))


def statue(rng: Rng) -> Pixels:
    """The same in the colours of stone."""
    gray = shapes(rng).mean(2, keepdims=True)
    return _pixels(gray * (1, 0.97, 0.9) * (0.8 + 0.3 * clouds(rng, 6)))


def beach(rng: Rng) -> Pixels:
    """Sky, sea and sand, with some figures of ellipses in swimwear."""
    height = np.linspace(0, 1, SIDE)[:, None, None]
    horizon = rng.uniform(0.25, 0.5)
    sea = horizon + rng.uniform(0.1, 0.3)
    sky = np.array((120, 180, 240)) * (1 - height) + np.array((230, 240, 255)) * height
    ground = np.where(height < sea, (30, 120, 160), (226, 202, 150))
    image = np.where(height < horizon, sky, ground) * np.ones((1, SIDE, 1))
    image = image * (0.85 + 0.3 * clouds(rng, 7))
    for _ in range(rng.integers(0, 4)):
        image = _figure(image, rng)
    return _pixels(image)


def _figure(image: NDArray[np.float64], rng: Rng) -> NDArray[np.float64]:
    size = rng.uniform(0.2, 0.6) * SIDE
    x, y = rng.uniform(0.1, 0.9) * SIDE, rng.uniform(0.4, 0.8) * SIDE
    skin, cloth = np.asarray(SKIN[rng.integers(len(SKIN))], float), rng.uniform(0, 255, 3)
    parts = [(0, 0, 0.16, 0.3, skin), (0, -0.42, 0.1, 0.13, skin)]
    parts += [(side * 0.09, 0.5, 0.07, 0.3, skin) for side in (-1, 1)]
    parts += [(side * 0.2, 0, 0.05, 0.26, skin) for side in (-1, 1)]
    parts += [(0, 0.2, 0.17, 0.1, cloth), (0, -0.1, 0.16, 0.08, cloth)]
    for right, down, width, height, colour in parts:
        mask = np.zeros((SIDE, SIDE), np.float32)
        centre = (int(x + right * size), int(y + down * size))
        axes = (max(1, int(width * size)), max(1, int(height * size)))
        cv2.ellipse(mask, centre, axes, 0, 0, 360, 1.0, -1, cv2.LINE_AA)
        soft = cv2.GaussianBlur(mask, (0, 0), 1.2)[..., None]
        image = image * (1 - soft) + colour * soft
    return image


def colours(rng: Rng) -> Pixels:
    """Clouds of three colours."""
    three, veil = rng.uniform(0, 255, (3, 3)), clouds(rng, 3)
    return _pixels(three[0] * veil + three[1] * clouds(rng, 7) + three[2] * (1 - veil) * 0.5)


def page(rng: Rng) -> Pixels:
    """Boxes and lines of text, as on a screen."""
    image = np.full((SIDE, SIDE, 3), int(rng.uniform(200, 255)), np.uint8)
    for _ in range(rng.integers(5, 40)):
        x, y, width, height = rng.integers((0, 0, 5, 3), (SIDE, SIDE, 150, 60)).tolist()
        colour = rng.integers(0, 255, 3).tolist()
        cv2.rectangle(image, (x, y), (x + width, y + height), colour, -1)
    for row in range(30, SIDE, 35):
        cv2.putText(image, "Lorem ipsum dolor", (10, row), 0, 0.6, (20, 20, 20), 1, cv2.LINE_AA)
    return image


def varied(image: Pixels, rng: Rng, least: float = 0.25) -> Pixels:
    """A part of a picture, perhaps mirrored and in other light."""
    height, width = image.shape[:2]
    part = rng.uniform(least, 1)
    rows, columns = int(height * part), int(width * min(1, part * rng.uniform(0.7, 1.4)))
    top, left = rng.integers(0, height - rows + 1), rng.integers(0, width - columns + 1)
    found = image[top : top + rows, left : left + columns].astype(float)
    if rng.random() < 0.5:
        found = found[:, ::-1]
    light = rng.uniform(0.6, 1.4, 3 if rng.random() < 0.5 else 1)
    found = found * light + rng.uniform(-40, 40)
    if rng.random() < 0.15:
        found = found.mean(2, keepdims=True).repeat(3, 2)
    return _pixels(found[::-1] if rng.random() < 0.2 else found)


def scenes(seed: int, count: int) -> Iterator[Pixels]:
    """So many pictures of all kinds, uint8 [H, W, 3] RGB."""
    rng = np.random.default_rng(seed)
    photos = [photo(name) for name in PHOTOS]
    for _ in range(count):
        kind = rng.integers(7)
        if kind == 0:
            yield varied(photos[rng.integers(len(photos))], rng)
        elif kind == 1:
            yield varied(shapes(rng), rng)
        else:
            yield (shapes, shapes, statue, statue, (beach, colours, page)[rng.integers(3)])[
                kind - 2
            ](rng)


def _pixels(image: NDArray[np.float64]) -> Pixels:
    return np.clip(image, 0, 255).astype(np.uint8)
