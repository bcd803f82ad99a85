"""Who somebody is, as a vector: the distance of two says whether two faces are one person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from function.faces import geometry
from function.faces.exposure import lifted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.runtime.engine import Engine

SAME_PERSON = 0.6
"""Usual threshold: below it two faces are taken for one person (dlib's own)."""

_SIDE, _PADDING = 150, 0.25
_CORNERS = [263, 362, 33, 133, 2]  # outer and inner corners of the eyes, base of the nose
# dlib's five-point chip in a unit square, (x, y), in the order of _CORNERS
_TEMPLATE = np.array(
    [[0.8596, 0.2135], [0.6461, 0.2290], [0.1206, 0.2137], [0.3341, 0.2291], [0.4901, 0.6278]]
)
_CHIP = (_TEMPLATE + _PADDING) / (1 + 2 * _PADDING) * _SIDE


class Identity:
    """The embedded identity model.

    Args:
        engine: runs `face_identity_128.onnx` (float32 [N, 150, 150, 3], RGB 0–255).
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def embed(self, pixels: NDArray[np.uint8], mesh: NDArray[np.float32]) -> NDArray[np.float32]:
        """The identity of one face, float32 [128]; see `embed_all`."""
        return self.embed_all(pixels, [mesh])[0]

    def embed_all(
        self, pixels: NDArray[np.uint8], meshes: Sequence[NDArray[np.float32]]
    ) -> list[NDArray[np.float32]]:
        """The identities of some faces of one photo, which may run as one batch.

        Args:
            pixels: uint8 [H, W, 3] RGB.
            meshes: each float32 [468, 2 or 3] points in image pixels.

        Returns:
            float32 [128] for each.
        """
        if not meshes:
            return []
        chips = np.stack([_chip(pixels, mesh) for mesh in meshes], dtype=np.float32)
        return list(self._engine.run(chips)[0])


def _chip(pixels: NDArray[np.uint8], mesh: NDArray[np.float32]) -> NDArray[np.uint8]:
    """A face as the network wants it, uint8 [150, 150, 3]."""
    matrix = geometry.similarity(mesh[_CORNERS, :2], _CHIP)
    # Nearly black, a face is as far from itself in good light as a stranger is, unless lifted.
    return lifted(geometry.crop(pixels, matrix, (_SIDE, _SIDE)))


def distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """L2 distance of two embeddings: same person up to about 0.6, strangers above."""
    return float(np.linalg.norm(a - b))
