"""The real models, loaded once, and the two sample photos as arrays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from function.faces import pose
from function.faces.detect import CenterFace
from function.faces.face import Face, Fitted
from function.faces.identity import DlibIdentity
from function.faces.landmarks import FaceMesh
from function.faces.search import Search
from function.runtime.backends.onnx import OnnxEngine
from function.telemetry.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]
    Find = Callable[[Pixels], list[Fitted]]

MODELS = Path(__file__).parents[3] / "function" / "models"


class Counting:
    """An engine that counts its runs and remembers what the largest input was."""

    def __init__(self, engine: OnnxEngine) -> None:
        self._engine = engine
        self.provider = engine.provider
        self.runs = 0
        self.largest = 0

    def run(self, batch: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        self.runs += 1
        self.largest = max(self.largest, batch.size)
        return self._engine.run(batch)

    def reset(self) -> None:
        self.runs = self.largest = 0


@pytest.fixture(scope="session")
def detect_engine() -> Counting:
    return Counting(OnnxEngine(MODELS / "centerface.onnx"))


@pytest.fixture(scope="session")
def mesh_engine() -> Counting:
    return Counting(OnnxEngine(MODELS / "face_mesh_468.onnx"))


@pytest.fixture(scope="session")
def detector(detect_engine: Counting) -> CenterFace:
    return CenterFace(detect_engine)


@pytest.fixture(scope="session")
def mesh(mesh_engine: Counting) -> FaceMesh:
    return FaceMesh(mesh_engine)


@pytest.fixture(scope="session")
def identity() -> DlibIdentity:
    return DlibIdentity(OnnxEngine(MODELS / "face_identity_128.onnx"))


@pytest.fixture(scope="session")
def search(detector: CenterFace) -> Search:
    return Search(detector)


@pytest.fixture(scope="session")
def find(search: Search, mesh: FaceMesh) -> Find:
    """Every face of an image, confirmed."""
    return lambda pixels: search.faces(pixels, mesh.fit, Timings())


@pytest.fixture(scope="session")
def analyse(find: Find, identity: DlibIdentity) -> Callable[[Pixels], list[Face]]:
    """Every face of an image with its pose and identity; the box is the detected one."""

    def faces(pixels: Pixels) -> list[Face]:
        return [
            Face(
                index,
                fitted.detection.box,
                fitted.detection,
                fitted.five,
                fitted.presence,
                pose.estimate(fitted.mesh),
                fitted.mesh,
                fitted.outline,
                identity.embed(pixels, [fitted])[0],
            )
            for index, fitted in enumerate(find(pixels))
        ]

    return faces


@pytest.fixture(scope="session")
def collins(photos: Path) -> Pixels:
    """512 × 512, a face of 90 × 120 pixels."""
    return _read(photos / "astronaut.png")


@pytest.fixture(scope="session")
def hopper(photos: Path) -> Pixels:
    """512 × 600, a face of 185 × 205 pixels."""
    return _read(photos / "grace_hopper.jpg")


def _read(path: Path) -> Pixels:
    pixels = np.array(Image.open(path).convert("RGB"))
    pixels.setflags(write=False)
    return pixels
