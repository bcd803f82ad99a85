"""Flicker: how much a face that holds still moves and changes colour in a clip."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import av
import cv2
import numpy as np

from function.faces import geometry
from function.faces.face import mesh_of
from tests.bench.quality.judge import eyes_apart

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tests.bench.quality.judge import Judge

    Pixels = NDArray[np.uint8]

FRAMES = 24
_RATE = 25
_NOISE = 2.5  # levels, of a sensor
_SIZE = 512


@dataclass(frozen=True, slots=True)
class Flicker:
    """What changes from frame to frame in a face that holds still.

    Attributes:
        jitter: of its points, in percent of the distance of its eyes.
        colour: of its skin, ΔE (CIE 1976).
    """

    jitter: float
    colour: float


def _motion(frame: int) -> NDArray[np.float64]:
    """A hand-held camera: where it has moved the photo in one frame, float64 [2, 3]."""
    t = 2 * np.pi * frame / FRAMES
    matrix = cv2.getRotationMatrix2D((_SIZE / 2, _SIZE / 2), 0.8 * np.sin(t), 1 + 0.01 * np.cos(t))
    matrix[:, 2] += 2.3 * np.sin(2 * t), 1.7 * np.cos(t)
    return np.asarray(matrix)


def film(photo: Pixels, path: Path) -> None:
    """A clip of a photo before a hand-held camera, with the noise of a sensor."""
    rng = np.random.default_rng(1)
    photo = cv2.resize(photo[: min(photo.shape[:2]), : min(photo.shape[:2])], (_SIZE, _SIZE))
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=_RATE, options={"crf": "8", "preset": "fast"})
        stream.width = stream.height = _SIZE
        for number in range(FRAMES):
            size, border = (_SIZE, _SIZE), cv2.BORDER_REFLECT
            moved = cv2.warpAffine(photo, _motion(number), size, borderMode=border)
            noisy = np.clip(moved + _NOISE * rng.normal(size=moved.shape), 0, 255).astype(np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(noisy, format="rgb24")))
        file.mux(stream.encode(None))


def measured(judge: Judge, path: Path) -> Flicker:
    """The flicker of a clip that `film` made, or that was made of one."""
    with av.open(str(path)) as file:
        frames = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
    still, places = [], []
    for number, frame in enumerate(frames):
        back = geometry.invert(_motion(number))
        places.append(geometry.apply(back, mesh_of(judge.face(frame))[:, :2]))
        image = cv2.warpAffine(frame, back, (_SIZE, _SIZE)).astype(np.float32) / 255
        still.append(cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2LAB), (0, 0), 2.5))
    points = np.stack(places)
    middle = points.mean(0)
    face = np.zeros((_SIZE, _SIZE), np.uint8)
    cv2.fillConvexPoly(face, cv2.convexHull(np.round(middle).astype(np.int32)), 1)
    steps = [np.linalg.norm(b - a, axis=2)[face > 0].mean() for a, b in pairwise(still)]
    moved = np.linalg.norm(np.diff(points, axis=0), axis=2).mean()
    return Flicker(100 * float(moved) / eyes_apart(middle), float(np.mean(steps)))
