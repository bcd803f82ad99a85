"""The person to put in, gathered from one photo after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from function.quality_warning import QualityWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.identity import Metric
    from function.faces.swappers.protocol import SourceFace

_DEGREES_PER_HALVING = 10.0
"""A face of half the size is worth as much as one that is turned so much further away."""
_ENOUGH = 512.0
"""A larger face, in pixels, is not a better source."""


@dataclass(slots=True)
class Person:
    """One or more photos of one person.

    The identity is their mean. Geometry and texture come from the photo that serves best, a face
    that looks into the camera and has many pixels; only that one stays in memory.

    Attributes:
        metric: compares embeddings.
    """

    metric: Metric
    _best: SourceFace | None = None
    _embeddings: list[NDArray[np.float32]] = field(default_factory=list)

    def add(self, portrait: SourceFace) -> None:
        """Add one photo, of which `embedding` is its own."""
        self._embeddings.append(portrait.embedding)
        if self._best is None or _fitness(portrait.face) > _fitness(self._best.face):
            self._best = portrait

    def source(self) -> SourceFace:
        """The person that the photos show; there must be one photo."""
        if self._best is None:
            raise ValueError("a person without a photo")
        return replace(self._best, embedding=self._mean())

    @property
    def warnings(self) -> tuple[QualityWarning, ...]:
        """`sources_differ`, when the photos do not seem to show one person."""
        mean = self._mean()
        furthest = max(self.metric.between(mean, each) for each in self._embeddings)
        return (QualityWarning.SOURCES_DIFFER,) if furthest > self.metric.differ else ()

    def _mean(self) -> NDArray[np.float32]:
        return np.asarray(np.mean(self._embeddings, axis=0), np.float32)


def _fitness(face: Face) -> float:
    """How well a face serves as a source, in degrees of turning; more is better."""
    size = min(max(face.box.width, face.box.height, 1.0), _ENOUGH)
    turned = math.hypot(face.pose.yaw, face.pose.pitch)
    return _DEGREES_PER_HALVING * math.log2(size) - turned
