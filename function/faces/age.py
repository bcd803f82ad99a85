"""How old people look, in years: models that an operator brings, none ships with Ember."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import cv2
import numpy as np

from function.faces import align, geometry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.face import Box, Face
    from function.runtime.engine import Engine

_AROUND = 1.5  # InsightFace's own margin around a detection
_GROUPS = np.array((1, 6, 14.5, 24.5, 34.5, 44.5, 54.5, 64.5, 75), np.float32)
# The middles of FairFace's groups: 0-2, 3-9, 10-19, 20-29, … 60-69, more than 70.


class Age(Protocol):
    """A model of ages."""

    def years(self, pixels: NDArray[np.uint8], faces: Sequence[Face]) -> list[float]:
        """How old each face of a photo looks.

        Args:
            pixels: uint8 [H, W, 3] RGB.
            faces: where they are.
        """
        ...


class GenderAge:
    """InsightFace's `genderage`, of which only the age is read.

    Args:
        engine: runs float32 [N, 3, 96, 96], RGB 0–255, to [N, 3]: two numbers for genders, and the
            age in centuries.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def years(self, pixels: NDArray[np.uint8], faces: Sequence[Face]) -> list[float]:
        """How old each face looks."""
        crops = (_square(pixels, face.detection.box, 96, _AROUND) for face in faces)
        items = [align.planes(crop[None], 1.0, 0.0) for crop in crops]
        return [100 * float(self._engine.run(each)[0][0, 2]) for each in items]


class AgeGroups:
    """Transformers that were trained on FairFace's nine groups of ages.

    Args:
        engine: runs float32 [N, 3, 224, 224], RGB from -1 to 1, to the logits [N, 9].
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def years(self, pixels: NDArray[np.uint8], faces: Sequence[Face]) -> list[float]:
        """How old each face looks: the mean of the groups, each as likely as the model says."""
        found = []
        for face in faces:
            crop = _square(pixels, face.detection.box, 224, 1.25)
            logits = self._engine.run(align.planes(crop[None], 1 / 127.5, -1.0))[0][0]
            likely = np.exp(logits - logits.max())
            found.append(float(likely @ _GROUPS / likely.sum()))
        return found


def _square(pixels: NDArray[np.uint8], box: Box, side: int, around: float) -> NDArray[np.uint8]:
    """The square around a box, uint8 [side, side, 3]."""
    scale = side / (around * max(box.width, box.height, 1.0))
    x, y = box.center
    matrix = np.array([[scale, 0, side / 2 - scale * x], [0, scale, side / 2 - scale * y]])
    return geometry.crop(pixels, matrix, (side, side), cv2.BORDER_REPLICATE)
