"""Both sample photos, enlarged, with one face of about 200 pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from function.faces.pipeline import Pipeline
from function.faces.swappers.mesh import MeshSwapper
from function.images.picture import Picture
from function.process.wiring.service import embedded
from function.service import opening
from function.telemetry.timings import Timings
from warmup.models import manifest

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from function.faces.face import Face

    Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Portrait:
    """A photo and its face."""

    pixels: Pixels
    face: Face


@pytest.fixture(scope="session")
def pipeline() -> Pipeline:
    return Pipeline(opening.load(manifest.read(embedded())), MeshSwapper())


@pytest.fixture(scope="session")
def faces_of(pipeline: Pipeline):
    """The faces of uint8 [H, W, 3], as a reader finds them."""
    return lambda pixels: pipeline.find(
        Picture(np.ascontiguousarray(pixels)), Timings(), identify=False, quick=True
    )


@pytest.fixture(scope="session")
def collins(photos: Path, faces_of) -> Portrait:
    """A face of 120 pixels, enlarged to 240, in 440 × 440."""
    image = Image.open(photos / "astronaut.png").convert("RGB").crop((110, 0, 330, 220))
    return _portrait(image.resize((440, 440), Image.Resampling.LANCZOS), faces_of)


@pytest.fixture(scope="session")
def hopper(photos: Path, faces_of) -> Portrait:
    """A face of 200 pixels in 400 × 440."""
    return _portrait(Image.open(photos / "grace_hopper.jpg").crop((56, 0, 456, 440)), faces_of)


def _portrait(image: Image.Image, faces_of) -> Portrait:
    pixels = np.array(image.convert("RGB"))
    pixels.setflags(write=False)
    (face,) = faces_of(pixels)
    return Portrait(pixels, face)
