"""The 468-point face mesh: where every part of a face is, in 3-D."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from function.faces import geometry

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.face import Detection
    from function.runtime.engine import Engine

SIDE = 192
"""Side of the network's square input in pixels."""

LEFT_EYE, RIGHT_EYE = 33, 263
"""Mesh indices of the outer corners of the image-left and image-right eye."""

_MARGIN = 1.5


class FaceMesh:
    """The embedded landmark model.

    Args:
        engine: runs `face_mesh_468.onnx` (float32 [1, 192, 192, 3], RGB 0–1).
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def fit(
        self, pixels: NDArray[np.uint8], detection: Detection
    ) -> tuple[NDArray[np.float32], float]:
        """Fit the mesh to one face, in two passes: the second starts from the first's points.

        Args:
            pixels: uint8 [H, W, 3] RGB.
            detection: where the face is.

        Returns:
            float32 [468, 3] points (x, y in image pixels, z in the same unit, smaller is nearer) and
            the presence, 0–1.
        """
        box, points = detection.box, detection.points
        mesh, _ = self._pass(
            pixels, np.array(box.center), max(box.width, box.height), points[1] - points[0]
        )
        eyes = mesh[RIGHT_EYE, :2] - mesh[LEFT_EYE, :2]
        axis = eyes / max(float(np.linalg.norm(eyes)), 1e-6)
        turn = np.array([[axis[0], axis[1]], [-axis[1], axis[0]]])
        level = mesh[:, :2] @ turn.T
        low, high = level.min(0), level.max(0)
        return self._pass(pixels, turn.T @ ((low + high) / 2), float((high - low).max()), eyes)

    def _pass(
        self,
        pixels: NDArray[np.uint8],
        center: NDArray[np.floating],
        extent: float,
        eyes: NDArray[np.floating],
    ) -> tuple[NDArray[np.float32], float]:
        """One run on a square around `center`, `eyes` (a vector from left to right) made level."""
        scale = SIDE / (_MARGIN * max(extent, 1.0))
        angle = np.arctan2(eyes[1], eyes[0])
        cos, sin = scale * np.cos(angle), scale * np.sin(angle)
        linear = np.array([[cos, sin], [-sin, cos]])
        shift = SIDE / 2 - linear @ center
        matrix = np.column_stack([linear, shift])
        chip = geometry.crop(pixels, matrix, (SIDE, SIDE))
        points, logit = self._engine.run(chip[None].astype(np.float32) / 255)
        mesh = points.reshape(468, 3).copy()
        mesh[:, :2] = geometry.apply(geometry.invert(matrix), mesh[:, :2])
        mesh[:, 2] /= scale
        return mesh, float(1 / (1 + np.exp(-logit.ravel()[0])))
