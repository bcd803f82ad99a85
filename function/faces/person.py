"""The people to put in, each gathered from one photo after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from function.faces import fitness
from function.faces.face import Box
from function.problems import Problem
from function.quality_warning import QualityWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.identity import Metric
    from function.faces.swappers.protocol import SourceFace

_AROUND = 0.5
"""By this part of its size what is kept of a photo reaches over the face: models see that much."""


@dataclass(slots=True)
class Person:
    """One or more photos of one person.

    The identity is their mean, in which a photo that serves badly counts little. Geometry and
    texture come from the one that serves best; only that one stays in memory.

    Attributes:
        metric: compares embeddings.
    """

    metric: Metric
    _best: SourceFace | None = None
    _embeddings: list[NDArray[np.float32]] = field(default_factory=list)
    _fitness: list[float] = field(default_factory=list)

    def add(self, portrait: SourceFace) -> None:
        """Add one photo, of which `embedding` is its own."""
        worth = fitness.of(portrait)
        if self._best is None or worth > max(self._fitness):
            self._best = portrait
        self._embeddings.append(portrait.embedding)
        self._fitness.append(worth)

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
        weights = fitness.weights(self._fitness)
        return np.asarray(np.average(self._embeddings, 0, weights), np.float32)


@dataclass(slots=True)
class People:
    """Everybody whom one request puts in, by name; "" is the name of the only one.

    Of each photo only the part around the face is kept where there are several people, as all of
    them stay in memory together.

    Attributes:
        most_pixels: of all that is kept.
        sources: the people.
        faces: their faces as they are on the whole photos.
    """

    most_pixels: int
    sources: dict[str, SourceFace] = field(default_factory=dict)
    faces: dict[str, Face] = field(default_factory=dict)

    def add(self, name: str, source: SourceFace) -> None:
        """Add somebody.

        Raises:
            Problem: `too_many_pixels`.
        """
        self.faces[name] = source.face
        self.sources[name] = near(source) if name else source
        kept = sum(math.prod(each.picture.size) for each in self.sources.values())
        if kept > self.most_pixels:
            raise Problem(
                "too_many_pixels",
                f"The faces in `sources` have {kept} pixels together; the limit is"
                f" {self.most_pixels}.",
                field="sources",
                limit=self.most_pixels,
                value=kept,
                setting="EMBER_MAX_PIXELS",
            )


def near(source: SourceFace) -> SourceFace:
    """The same person with a copy of only that part of the photo that a swap may look at."""
    box, (width, height) = source.face.box, source.picture.size
    across, down = _AROUND * box.width, _AROUND * box.height
    left, top = max(0, int(box.left - across)), max(0, int(box.top - down))
    right = min(width, math.ceil(box.right + across))
    bottom = min(height, math.ceil(box.bottom + down))
    part = source.picture.pixels[top:bottom, left:right].copy()
    return replace(
        source,
        picture=replace(source.picture, pixels=part, alpha=None),
        face=_shifted(source.face, left, top),
    )


def _shifted(face: Face, left: int, top: int) -> Face:
    """A face as it is in the part of its photo that begins at these pixels."""
    flat, deep = np.array([left, top], np.float32), np.array([left, top, 0], np.float32)
    found = face.detection
    return replace(
        face,
        box=_moved(face.box, left, top),
        detection=replace(found, box=_moved(found.box, left, top), points=found.points - flat),
        five=face.five - flat,
        mesh=None if face.mesh is None else face.mesh - deep,
        outline=None if face.outline is None else face.outline - flat,
    )


def _moved(box: Box, left: int, top: int) -> Box:
    return Box(box.left - left, box.top - top, box.right - left, box.bottom - top)
