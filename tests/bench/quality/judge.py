"""The independent judge: whose face it is, and whether expression, border and detail are right.

It shares the networks with the swap, but neither its alignment nor its masks, so that a swap cannot
be right by its own measure alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
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
        error: mean distance from the picture that is right, ΔE; None where none is known.
    """

    source: float
    target: float
    lm: float
    seam: float
    ring: float
    sharp: float
    error: float | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What the judge sees on a picture.

    Attributes:
        face: the largest.
        identity: whose it is, float32 [n, 128], by crops that differ a little (see `apart`).
    """

    face: Face
    identity: NDArray[np.float32]


class Judge:
    """Sees faces by the embedded models; each picture once."""

    def __init__(self) -> None:
        listed = manifest.read(Path(str(files("function") / "models" / "models.toml")))
        self._models = opening.load(listed, 2)
        self._pipeline = Pipeline(self._models, MeshSwapper())
        self._seen: dict[bytes, Seen] = {}

    def face(self, pixels: Pixels) -> Face:
        """The largest face of a picture.

        Raises:
            ValueError: it has none.
        """
        return self._look(pixels).face

    def _look(self, pixels: Pixels) -> Seen:
        key = sha256(repr(pixels.shape).encode() + pixels.tobytes()).digest()
        if key not in self._seen:
            found = self._pipeline.find(Picture(pixels), Timings(), identify=False)
            if not found:
                raise ValueError("the judge sees no face")
            face = largest(found)
            self._seen[key] = Seen(face, self._identity(pixels, face))
        return self._seen[key]

    def _identity(self, pixels: Pixels, face: Face) -> NDArray[np.float32]:
        """See `Seen`; each crop has five points as near as can be to dlib's mean face."""
        matrix = geometry.similarity(face.five, _CHIP)
        chips = []
        for scale, right, down in _JITTERS:
            middle = _SIDE / 2 * (1 - scale)
            moved = scale * matrix + np.array([[0, 0, middle + right], [0, 0, middle + down]])
            chip = geometry.crop(pixels, moved, (_SIDE, _SIDE))
            chips += [chip, chip[:, ::-1]]
        (found, *_) = self._models.engines["identity"].run(np.stack(chips).astype(np.float32))
        return np.asarray(found, np.float32)

    def verdict(
        self, source: Pixels, target: Pixels, result: Pixels, right: Pixels | None = None
    ) -> Verdict:
        """Judge one swap of the largest face.

        Args:
            source: uint8 [H, W, 3] RGB.
            target: another one.
            result: as large as the target.
            right: what it should be, when that is known.
        """
        there, before, after = (self._look(each) for each in (source, target, result))
        was, now = (mesh_of(each.face)[:, :2] for each in (before, after))
        border = Border.between(target, result, mesh_of(before.face))
        return Verdict(
            source=apart(after.identity, there.identity),
            target=apart(after.identity, before.identity),
            lm=100 * float(np.linalg.norm(now - was, axis=1).mean()) / eyes_apart(was),
            seam=border.seam(target, result),
            ring=border.ring(target, result),
            sharp=border.sharpness(target, result),
            error=None if right is None else border.error(right, result),
        )


def apart(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """The distance of two identities: the mean over crops that were made alike."""
    return float(np.linalg.norm(one - other, axis=1).mean())


def eyes_apart(points: NDArray[np.floating]) -> float:
    """The distance of the middles of the eyes of a mesh [468, 2 or 3], in its unit."""
    left, right = (points[eye, :2].mean(0) for eye in _EYES)
    return max(float(np.linalg.norm(left - right)), 1e-6)
