"""The independent judge: whose face it is, and whether expression, border and detail are right.

It shares the networks with the swap, but neither its alignment nor its masks, so that a swap cannot
be right by its own measure alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from function.faces import geometry
from function.faces.face import mesh_of
from function.faces.pipeline import Pipeline
from function.faces.select import largest
from function.faces.swappers.mesh import MeshSwapper
from function.images.picture import Picture
from function.service import opening
from function.telemetry.timings import Timings
from tests.bench.quality.border import Border
from warmup.models import manifest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.models import Models

    Pixels = NDArray[np.uint8]

_SIDE, _PADDING = 150, 0.25
# of dlib's mean face (iBUG's points in a unit square) the middles of the eyes, the tip of the nose
# and the corners of the mouth, (x, y)
_MEAN_FACE = np.array(
    [[0.2274, 0.2114], [0.7529, 0.2114], [0.4901, 0.5156], [0.2541, 0.7802], [0.7261, 0.7802]]
)
_CHIP = (_MEAN_FACE + _PADDING) / (1 + 2 * _PADDING) * _SIDE
_JITTERS = [(1.0, 0.0, 0.0), (0.97, 0.0, 0.0), (1.03, 0.0, 0.0), (1.0, 2.0, 0.0),
            (1.0, -2.0, 0.0), (1.0, 0.0, 2.0), (1.0, 0.0, -2.0)]  # fmt: skip
"""Scale and shift in pixels of the crops that are compared, each also mirrored."""
_EYES = ([33, 133, 159, 145], [263, 362, 386, 374])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge says of one swap.

    Attributes:
        source, target: distance of the result's identity to either; the same person is below 0.6.
        lm: how far the points of the face moved, in percent of the distance of the eyes: expression
            and pose that were not kept, and build that was taken over.
        seam: edge along the border of what changed that the target has not there, over the median
            gradient around.
        ring: change of the step of colour across that border, ΔE (CIE 1976).
        sharp: detail inside the face over that around, by the same of the target; 1 is right.
    """

    source: float
    target: float
    lm: float
    seam: float
    ring: float
    sharp: float


@dataclass(frozen=True)
class Judge:
    """Sees faces by the embedded models."""

    models: Models = field(
        default_factory=lambda: opening.load(
            manifest.read(Path(str(files("function") / "models" / "models.toml"))), 2
        )
    )

    @cached_property
    def _pipeline(self) -> Pipeline:
        return Pipeline(self.models, MeshSwapper())

    def face(self, pixels: Pixels) -> Face:
        """The largest face of a picture.

        Raises:
            ValueError: it has none.
        """
        found = self._pipeline.find(Picture(pixels), Timings(), identify=False)
        if not found:
            raise ValueError("the judge sees no face")
        return largest(found)

    def identity(self, pixels: Pixels, face: Face) -> NDArray[np.float32]:
        """Whose face it is, float32 [n, 128], by crops that differ a little (see `apart`).

        Each has five points as near as can be to where dlib's mean face has them.
        """
        matrix = geometry.similarity(face.five, _CHIP)
        chips = []
        for scale, right, down in _JITTERS:
            middle = _SIDE / 2 * (1 - scale)
            moved = scale * matrix + np.array([[0, 0, middle + right], [0, 0, middle + down]])
            chip = geometry.crop(pixels, moved, (_SIDE, _SIDE))
            chips += [chip, chip[:, ::-1]]
        (found, *_) = self.models.engines["identity"].run(np.stack(chips).astype(np.float32))
        return np.asarray(found, np.float32)

    def verdict(self, source: Pixels, target: Pixels, result: Pixels) -> Verdict:
        """Judge one swap of the largest face."""
        seen = [self.face(each) for each in (source, target, result)]
        whose = [
            self.identity(pixels, face)
            for pixels, face in zip((source, target, result), seen, strict=True)
        ]
        before, after = (mesh_of(face)[:, :2] for face in seen[1:])
        eyes = [before[eye].mean(0) for eye in _EYES]
        border = Border.between(target, result, mesh_of(seen[1]))
        return Verdict(
            source=apart(whose[2], whose[0]),
            target=apart(whose[2], whose[1]),
            lm=100 * float(np.linalg.norm(after - before, axis=1).mean() / _length(*eyes)),
            seam=border.seam(target, result),
            ring=border.ring(target, result),
            sharp=border.sharpness(target, result),
        )


def apart(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """The distance of two identities: the mean over crops that were made alike."""
    return float(np.linalg.norm(one - other, axis=1).mean())


def _length(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return max(float(np.linalg.norm(one - other)), 1.0)
