"""Analysed faces for the tests of the swappers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import function
from function.faces import pose
from function.faces.detect import CenterFace
from function.faces.face import Box, Face
from function.faces.identity import Identity, distance
from function.faces.landmarks import FaceMesh
from function.faces.swappers.mesh import MeshSwapper
from function.faces.swappers.protocol import Source
from function.images.picture import Picture
from function.runtime.backends.onnx import OnnxEngine

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODELS = Path(function.__file__).parent / "models"


@dataclass(frozen=True)
class Studio:
    """The embedded models, as a plain way from pixels to faces."""

    detector: CenterFace
    landmarks: FaceMesh
    identity: Identity

    def faces(self, pixels: NDArray[np.uint8]) -> list[Face]:
        """Faces from left to right."""
        found = sorted(self.detector.detect(pixels), key=lambda d: d.box.left)
        faces = []
        for index, detection in enumerate(found):
            mesh, presence = self.landmarks.fit(pixels, detection)
            face = Face(
                index,
                enclosing(mesh, pixels, detection.box),
                detection,
                mesh,
                presence,
                pose.estimate(mesh),
                self.identity.embed(pixels, mesh),
            )
            faces.append(face)
        return faces

    def face(self, pixels: NDArray[np.uint8]) -> Face:
        """The only face."""
        (face,) = self.faces(pixels)
        return face

    def source(self, pixels: NDArray[np.uint8]) -> Source:
        """The only face as a source."""
        face = self.face(pixels)
        return Source(Picture(pixels), face, face.embedding)

    def distances(
        self, result: NDArray[np.uint8], source: Source, target: Face
    ) -> tuple[float, float]:
        """Identity distance of the result, found anew, to the source and to the target."""
        found = self.face(result).embedding
        return distance(found, source.embedding), distance(found, target.embedding)


def enclosing(mesh: NDArray[np.float32], pixels: NDArray[np.uint8], box: Box | None = None) -> Box:
    """Whole pixels around the mesh and the box, inside the image."""
    height, width = pixels.shape[:2]
    box = box or Box(*mesh[:, :2].min(0), *mesh[:, :2].max(0))
    left, top = np.floor(np.minimum(mesh[:, :2].min(0), (box.left, box.top)))
    right, bottom = np.ceil(np.maximum(mesh[:, :2].max(0), (box.right, box.bottom)))
    xs, ys = np.clip((left, right), 0, width), np.clip((top, bottom), 0, height)
    return Box(int(xs[0]), int(ys[0]), int(xs[1]), int(ys[1]))


@pytest.fixture(scope="session")
def studio() -> Studio:
    return Studio(
        CenterFace(OnnxEngine(MODELS / "centerface.onnx")),
        FaceMesh(OnnxEngine(MODELS / "face_mesh_468.onnx")),
        Identity(OnnxEngine(MODELS / "face_identity_128.onnx")),
    )


@pytest.fixture(scope="session")
def swapper() -> MeshSwapper:
    return MeshSwapper()


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
