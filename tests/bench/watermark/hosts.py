"""Swapped faces to be marked: the two sample persons, each put into the other's photo.

There are two photos. So that a cell of the table has more than two faces, the photo that is swapped
into is changed before: mirrored, turned, lit otherwise, gray, noisy, compressed, cropped close. A
face that is larger than in the photo is enlarged and gets film grain, as an enlargement alone has
no detail that could stand in the way of a mark; a real large face has more.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np
from PIL import Image

from function.images.picture import Picture
from function.service.service import sample
from function.telemetry.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.pipeline import Pipeline
    from function.faces.swappers.protocol import SourceFace

    Pixels = NDArray[np.uint8]

_AROUND = 1.9
"""Side of a photo in sides of its face."""
_GRAIN = 2.0


@dataclass(frozen=True, slots=True)
class Host:
    """A swapped photo with one face.

    Attributes:
        name: how it was made.
        pixels: uint8 [H, W, 3] RGB.
        face: as it was found before the swap.
        source: the person who was put in.
        gray: whether it has no colour.
    """

    name: str
    pixels: Pixels
    face: Face
    source: SourceFace
    gray: bool


def _level(factor: float, plus: float, gamma: float = 1) -> Callable[[Pixels], Pixels]:
    levels = 255 * (np.arange(256) / 255) ** gamma * factor + plus
    table = np.clip(levels, 0, 255).astype(np.uint8)
    return lambda pixels: table[pixels]


def _tinted(pixels: Pixels) -> Pixels:
    return np.asarray(np.clip(pixels * np.array([1.08, 1, 0.86]), 0, 255), np.uint8)


def _gray(pixels: Pixels) -> Pixels:
    return np.repeat(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)[..., None], 3, 2)


def _turned(angle: float) -> Callable[[Pixels], Pixels]:
    def turn(pixels: Pixels) -> Pixels:
        height, width = pixels.shape[:2]
        matrix = cv2.getRotationMatrix2D((width / 2, height / 3), angle, 1)
        return np.asarray(
            cv2.warpAffine(
                pixels, matrix, (width, height), flags=cv2.INTER_CUBIC,
                borderMode=cv2.BORDER_REFLECT_101,
            ),
            np.uint8,
        )  # fmt: skip

    return turn


def _noisy(pixels: Pixels) -> Pixels:
    noise = np.random.default_rng(1).normal(0, 5, (*pixels.shape[:2], 1))
    return np.asarray(np.clip(np.rint(pixels + noise), 0, 255), np.uint8)


def _compressed(pixels: Pixels) -> Pixels:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=60)
    return np.asarray(Image.open(out))


def _soft(pixels: Pixels) -> Pixels:
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), 1.2), np.uint8)


def _sharp(pixels: Pixels) -> Pixels:
    return np.asarray(
        cv2.addWeighted(pixels, 1.7, cv2.GaussianBlur(pixels, (0, 0), 1.5), -0.7, 0), np.uint8
    )


def _same(pixels: Pixels) -> Pixels:
    return pixels


CHANGES: dict[str, Callable[[Pixels], Pixels]] = {
    "as it is": _same,
    "mirrored": lambda pixels: np.ascontiguousarray(pixels[:, ::-1]),
    "turned": _turned(14),
    "turned back": _turned(-9),
    "dark": _level(0.55, 0, 1.2),
    "bright": _level(0.85, 38, 0.8),
    "flat": _level(0.6, 60),
    "tinted": _tinted,
    "gray": _gray,
    "noisy": _noisy,
    "compressed": _compressed,
    "soft": _soft,
    "sharp": _sharp,
    "close": _same,
}
"""What is done to a photo before the swap; `close` leaves little around the face."""


def hosts(pipeline: Pipeline, size: int, names: list[str] | None = None) -> Iterator[Host]:
    """Swapped photos whose face is `size` pixels long (the longer side of the detector's box)."""
    photos = {name: np.asarray(Image.open(io.BytesIO(sample(name)))) for name in PERSONS}
    sources = {}
    for person, pixels in photos.items():
        source, _ = pipeline.portrait(Picture(pixels), Timings())
        assert source is not None
        sources[person] = source
    for person, other in zip(PERSONS, reversed(PERSONS), strict=True):
        for name in names or CHANGES:
            pixels = CHANGES[name](photos[person])
            photo = _at_size(pipeline, pixels, size, 1.25 if name == "close" else _AROUND)
            picture = Picture(photo, gray=name == "gray")
            face = largest(pipeline, picture)
            swapped, _ = pipeline.swap(picture, [face], {"": sources[other]}, Timings())
            yield Host(f"{person} {name}", swapped, face, sources[other], picture.gray)


PERSONS = ("collins", "hopper")


def largest(pipeline: Pipeline, picture: Picture) -> Face:
    """The largest face of a photo that shows one."""
    return max(pipeline.find(picture, Timings(), identify=True), key=lambda each: each.box.area)


def _at_size(pipeline: Pipeline, pixels: Pixels, size: int, around: float) -> Pixels:
    """The part of a photo around its face, enlarged or shrunk so that the face has a size."""
    box = largest(pipeline, Picture(pixels)).detection.box
    side = max(box.width, box.height)
    x, y = box.center
    half = side * around / 2
    left, top = max(round(x - half), 0), max(round(y - half), 0)
    part = pixels[top : round(y + half), left : round(x + half)]
    scale = size / side
    width, height = (round(scale * n) for n in part.shape[1::-1])
    resized = np.asarray(Image.fromarray(part).resize((width, height), Image.Resampling.LANCZOS))
    if scale <= 1:
        return resized
    grain = np.random.default_rng(2).normal(0, 1, (height, width, 1))
    grain = cv2.GaussianBlur(grain, (0, 0), 0.7)[..., None]
    levels = np.rint(resized + grain * (_GRAIN / grain.std()))
    return np.asarray(np.clip(levels, 0, 255), np.uint8)
