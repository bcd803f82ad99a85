"""The 468-point face mesh: where every part of a face is, in 3-D; `dense` has flat ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import cv2
import numpy as np

from function.faces import geometry
from function.faces.exposure import lifted
from function.faces.face import Fitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.face import Detection
    from function.runtime.engine import Engine

SIDE = 192
"""Side of the network's square input in pixels."""

LEFT_EYE, RIGHT_EYE = 33, 263
"""Mesh indices of the outer corners of the image-left and image-right eye."""

_EYES = (
    [33, 160, 158, 133, 153, 144],
    [362, 385, 387, 263, 373, 380],
)  # the points around each that flat landmarks have as well
_NOSE, _MOUTH = 4, [61, 291]

_MARGIN = 1.5
_MOST_PASSES = 6
_SETTLED = np.radians(6)
# The network's logit is 20 to 60 on a face that was fitted well, and rarely above 20 on one that
# was fitted upside down or on its side; its sigmoid says 1.0 to both.
_SURE = 20.0


class Landmarks(Protocol):
    """A landmark model."""

    def fit(self, pixels: NDArray[np.uint8], detection: Detection) -> Fitted:
        """Find the points of one face.

        Args:
            pixels: uint8 [H, W, 3] RGB.
            detection: where the face is.
        """
        ...


class _Fit(NamedTuple):
    """One run's result: float32 [468, 3] points, the logit of a face, the angle of the crop."""

    mesh: NDArray[np.float32]
    logit: float
    angle: float


def five_of(mesh: NDArray[np.float32]) -> NDArray[np.float32]:
    """The five points of a mesh float32 [468, 3]: see `Fitted.five`."""
    flat = mesh[:, :2]
    eyes = [flat[eye].mean(0) for eye in _EYES]
    return np.stack([*eyes, flat[_NOSE], *flat[_MOUTH]]).astype(np.float32)


class FaceMesh:
    """The embedded landmark model.

    Args:
        engine: runs `face_mesh_468.onnx` (float32 [1, 192, 192, 3], RGB 0–1).
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def fit(self, pixels: NDArray[np.uint8], detection: Detection) -> Fitted:
        """Fit the mesh to one face, whichever way up it is.

        Two runs of the network are enough for an ordinary face: the second starts from the points
        of the first. It takes up to six while the eye line still turns. When the network is not
        sure, the face may lie on its side or head (the detector finds such a face, but places its
        points as if it were upright): the most promising of three quarter turns is followed too,
        and the surer fit wins. At worst 14 runs.

        Args:
            pixels: uint8 [H, W, 3] RGB.
            detection: where the face is.
        """
        box = detection.box
        center, extent = np.array(box.center), max(box.width, box.height)
        eyes = detection.points[1] - detection.points[0]
        angle = float(np.arctan2(eyes[1], eyes[0]))
        fit = self._settle(pixels, self._pass(pixels, center, extent, angle))
        if fit.logit < _SURE:
            turned = (
                self._pass(pixels, center, extent, angle + turn)
                for turn in (np.pi, np.pi / 2, -np.pi / 2)
            )
            promising = max(turned, key=lambda first: first.logit)
            fit = max(fit, self._settle(pixels, promising), key=lambda fit: fit.logit)
        mesh = fit.mesh
        return Fitted(detection, five_of(mesh), _presence(fit), mesh, mesh[:, :2])

    def follow(
        self, pixels: NDArray[np.uint8], mesh: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float]:
        """Fit the mesh to a face that has moved a little since its mesh was known: one run.

        Args:
            pixels: uint8 [H, W, 3] RGB.
            mesh: float32 [468, 3], where the face was.

        Returns:
            The new mesh, and the presence, 0–1.
        """
        fit = self._around(pixels, mesh, _eye_line(mesh))
        return fit.mesh, _presence(fit)

    def _settle(self, pixels: NDArray[np.uint8], fit: _Fit) -> _Fit:
        """Passes that each start from the points of the one before, until the eye line stays."""
        for done in range(1, _MOST_PASSES):
            angle = _eye_line(fit.mesh)
            if done > 1 and np.cos(angle - fit.angle) > np.cos(_SETTLED):
                break
            fit = self._around(pixels, fit.mesh, angle)
        return fit

    def _around(self, pixels: NDArray[np.uint8], mesh: NDArray[np.float32], angle: float) -> _Fit:
        """One run on the square around a mesh, in which a line at `angle` (radians) is level."""
        cos, sin = np.cos(angle), np.sin(angle)
        turn = np.array([[cos, sin], [-sin, cos]])
        level = mesh[:, :2] @ turn.T
        low, high = level.min(0), level.max(0)
        center = turn.T @ ((low + high) / 2)
        return self._pass(pixels, center, float((high - low).max()), angle)

    def _pass(
        self,
        pixels: NDArray[np.uint8],
        center: NDArray[np.floating],
        extent: float,
        angle: float,
    ) -> _Fit:
        """One run on a square around `center` in which a line at `angle` (radians) is level."""
        scale = SIDE / (_MARGIN * max(extent, 1.0))
        cos, sin = scale * np.cos(angle), scale * np.sin(angle)
        linear = np.array([[cos, sin], [-sin, cos]])
        matrix = np.column_stack([linear, SIDE / 2 - linear @ center])
        # Repeating the border makes twice as many half faces fit as a black surrounding does.
        chip = lifted(geometry.crop(pixels, matrix, (SIDE, SIDE), cv2.BORDER_REPLICATE))
        points, logit = self._engine.run(np.multiply(chip[None], 1 / 255, dtype=np.float32))
        mesh = points.reshape(468, 3).copy()
        mesh[:, :2] = geometry.apply(geometry.invert(matrix), mesh[:, :2])
        mesh[:, 2] /= scale
        return _Fit(mesh, float(logit.ravel()[0]), angle)


def _eye_line(mesh: NDArray[np.float32]) -> float:
    """The angle in radians of the line from the image-left eye to the other."""
    eyes = mesh[RIGHT_EYE, :2] - mesh[LEFT_EYE, :2]
    return float(np.arctan2(eyes[1], eyes[0]))


def _presence(fit: _Fit) -> float:
    return float(1 / (1 + np.exp(-fit.logit)))
