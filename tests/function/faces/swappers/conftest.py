"""Analysed faces for the tests of the swappers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from function.faces.face import Box, Face
from function.faces.identity import distance
from function.faces.pipeline import Pipeline
from function.faces.swappers.mesh import MeshSwapper
from function.faces.swappers.protocol import SourceFace
from function.images.picture import Picture
from function.process.wiring.service import embedded
from function.service import opening
from function.telemetry.timings import Timings
from warmup.models import manifest

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


@dataclass(frozen=True)
class FaceFinder:
    """A plain way from pixels to faces."""

    pipeline: Pipeline

    def faces(self, pixels: NDArray[np.uint8]) -> list[Face]:
        """Faces from left to right."""
        return self.pipeline.find(Picture(pixels), Timings(), identify=True)

    def face(self, pixels: NDArray[np.uint8]) -> Face:
        """The only face."""
        (face,) = self.faces(pixels)
        return face

    def source(self, pixels: NDArray[np.uint8]) -> SourceFace:
        """The only face as a source."""
        face = self.face(pixels)
        return SourceFace(Picture(pixels), face, face.embedding)

    def distances(
        self, result: NDArray[np.uint8], source: SourceFace, target: Face
    ) -> tuple[float, float]:
        """Identity distance of the result, found anew, to the source and to the target."""
        found = self.face(result).embedding
        return distance(found, source.embedding), distance(found, target.embedding)


def enclosing(mesh: NDArray[np.float32], pixels: NDArray[np.uint8]) -> Box:
    """Whole pixels around the mesh, inside the image."""
    height, width = pixels.shape[:2]
    xs = np.clip((np.floor(mesh[:, 0].min()), np.ceil(mesh[:, 0].max())), 0, width)
    ys = np.clip((np.floor(mesh[:, 1].min()), np.ceil(mesh[:, 1].max())), 0, height)
    return Box(int(xs[0]), int(ys[0]), int(xs[1]), int(ys[1]))


@pytest.fixture(scope="session")
def finder() -> FaceFinder:
    return FaceFinder(Pipeline(opening.load(manifest.read(embedded())), MeshSwapper()))


@pytest.fixture(scope="session")
def swapper(finder: FaceFinder) -> MeshSwapper:
    return finder.pipeline.swapper


@pytest.fixture(scope="session")
def collins(photos: Path) -> NDArray[np.uint8]:
    return _open(photos / "astronaut.png")


@pytest.fixture(scope="session")
def hopper(photos: Path) -> NDArray[np.uint8]:
    return _open(photos / "grace_hopper.jpg")


def _open(path: Path) -> NDArray[np.uint8]:
    pixels = np.asarray(Image.open(path).convert("RGB")).copy()
    pixels.setflags(write=False)
    return pixels
