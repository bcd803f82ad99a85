"""Identity embeddings: the distance of two says whether two faces are one person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from function.faces import align, geometry
from function.faces.exposure import lifted
from function.faces.face import mesh_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.runtime.engine import Engine


@dataclass(frozen=True, slots=True)
class Metric:
    """How alike two embeddings of one model are.

    Attributes:
        between: the distance of two, 0 for the same.
        same_person: below it two faces are taken for one person.
        differ: an embedding further than this from the mean of several shows somebody else.
        good_swap: a swapped face further than this from its source is not a good likeness.
        listed: below it a face is taken for that of somebody on a list. It is less than
            `same_person` where among many people some would be that much alike by chance.
        to_many: the distances of one embedding to the rows of an array [n, d], float [n].
    """

    between: Callable[[NDArray[np.float32], NDArray[np.float32]], float]
    same_person: float
    differ: float
    good_swap: float
    listed: float
    to_many: Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.float32]]


class Identity(Protocol):
    """An identity model."""

    @property
    def metric(self) -> Metric:
        """How its embeddings are compared."""
        ...

    def embed(self, pixels: NDArray[np.uint8], faces: Sequence[Face]) -> list[NDArray[np.float32]]:
        """The identities of some faces of one photo, which may run as one batch.

        Args:
            pixels: uint8 [H, W, 3] RGB.
            faces: where they are.

        Returns:
            float32 [n] for each, as the model gives it.
        """
        ...


def distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """L2 distance of two embeddings."""
    return float(np.linalg.norm(a - b))


def turned(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """1 less the cosine of the angle between two embeddings: 0 alike, 1 strangers, 2 opposites."""
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return 1 - float(a @ b) / lengths if lengths else 1.0


def _distances(many: NDArray[np.float32], one: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(np.linalg.norm(many - one, axis=1), np.float32)


def _turns(many: NDArray[np.float32], one: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(many, axis=1) * np.linalg.norm(one)
    return np.asarray(1 - many @ one / np.where(lengths > 0, lengths, np.inf), np.float32)


DLIB = Metric(distance, same_person=0.6, differ=0.3, good_swap=0.5, listed=0.5, to_many=_distances)
"""That of the embedded model: dlib's own threshold."""
ARCFACE = Metric(turned, same_person=0.6, differ=0.16, good_swap=0.5, listed=0.6, to_many=_turns)
"""A cosine of 0.4 makes one person; half of that angle is as far as the mean of two may be."""

_SIDE, _PADDING = 150, 0.25
_CORNERS = [263, 362, 33, 133, 2]  # outer and inner corners of the eyes, base of the nose
# dlib's five-point chip in a unit square, (x, y), in the order of _CORNERS
_TEMPLATE = np.array(
    [[0.8596, 0.2135], [0.6461, 0.2290], [0.1206, 0.2137], [0.3341, 0.2291], [0.4901, 0.6278]]
)
_CHIP = (_TEMPLATE + _PADDING) / (1 + 2 * _PADDING) * _SIDE


class DlibIdentity:
    """The embedded identity model.

    Args:
        engine: runs `face_identity_128.onnx` (float32 [N, 150, 150, 3], RGB 0–255).
    """

    metric = DLIB

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def embed(self, pixels: NDArray[np.uint8], faces: Sequence[Face]) -> list[NDArray[np.float32]]:
        """The identities of some faces of one photo, float32 [128] each."""
        if not faces:
            return []
        chips = np.stack([_chip(pixels, mesh_of(face)) for face in faces], dtype=np.float32)
        return list(self._engine.run(chips)[0])


class ArcFace:
    """ArcFace and its kin: InsightFace's `w600k_r50`, `glint360k_r100` and the like.

    Args:
        engine: runs float32 [N, 3, 112, 112], RGB from -1 to 1.
    """

    metric = ARCFACE

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def embed(self, pixels: NDArray[np.uint8], faces: Sequence[Face]) -> list[NDArray[np.float32]]:
        """The identities of some faces of one photo, float32 [512] each, not normalised."""
        if not faces:
            return []
        side = (112, 112)
        chips = [
            geometry.crop(pixels, align.matrix(face.five, align.ARCFACE_112, 112), side)
            for face in faces
        ]
        return list(self._engine.run(align.planes(np.stack(chips), 1 / 127.5, -1.0))[0])


def _chip(pixels: NDArray[np.uint8], mesh: NDArray[np.float32]) -> NDArray[np.uint8]:
    """A face as the network wants it, uint8 [150, 150, 3]."""
    matrix = geometry.similarity(mesh[_CORNERS, :2], _CHIP)
    # Nearly black, a face is as far from itself in good light as a stranger is, unless lifted.
    return lifted(geometry.crop(pixels, matrix, (_SIDE, _SIDE)))
