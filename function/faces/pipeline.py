"""From pixels to faces to swapped pixels: every step of a swap, without bytes and without HTTP.

Everything here runs in the calling thread and keeps no state, so that many threads may use one
pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from function.caution import Caution
from function.faces import pose
from function.faces.face import Box, Face, embedding_of
from function.faces.identity import distance
from function.faces.select import largest
from function.faces.swappers.protocol import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.face import Fitted
    from function.faces.models import Models
    from function.faces.swappers.protocol import Swapper
    from function.images.picture import Picture
    from function.trace import Trace

GOOD_SWAP = 0.5
"""Identity distance to the source above which a result carries `low_similarity`."""


@dataclass(frozen=True, slots=True)
class SwappedFace:
    """One face of the target after the swap.

    Attributes:
        face: the face as it was in the target.
        before: identity distance of the original face to the source.
        after: identity distance of the swapped face to the source.
        kept: identity distance of the swapped face to the original face.
        cautions: what may look wrong about this face.
    """

    face: Face
    before: float
    after: float
    kept: float
    cautions: tuple[Caution, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The steps of a swap over one set of models and one swapper."""

    models: Models
    swapper: Swapper

    def find(
        self, picture: Picture, trace: Trace, *, identify: bool, quick: bool = False
    ) -> list[Face]:
        """Every face of a picture in the documented order (left to right), with its mesh and pose.

        Args:
            picture: the photo.
            trace: gets spans of `detect`, `landmarks` and `identity`.
            identify: also compute identity embeddings.
            quick: look at the whole only, where small faces may be missed.
        """
        pixels = picture.pixels
        fitted = self.models.detect.faces(pixels, self.models.landmarks.fit, trace, quick=quick)
        faces = [
            Face(
                index=index,
                box=_enclosing(each, picture.size),
                detection=each.detection,
                mesh=each.mesh,
                presence=each.presence,
                pose=pose.estimate(each.mesh),
            )
            for index, each in enumerate(fitted)
        ]
        if not identify:
            return faces
        with trace.span("identity"):
            found = self.models.identity.embed_all(pixels, [face.mesh for face in faces])
        return [replace(face, embedding=own) for face, own in zip(faces, found, strict=True)]

    def portrait(self, picture: Picture, trace: Trace) -> tuple[Source | None, bool]:
        """The person whom a photo shows: its largest face.

        Args:
            picture: the photo.
            trace: gets spans of `detect`, `landmarks` and `identity`.

        Returns:
            None when there is no face, and whether there are more faces.
        """
        faces = self.find(picture, trace, identify=False)
        if not faces:
            return None, False
        face = largest(faces)
        with trace.span("identity"):
            embedding = self.models.identity.embed(picture.pixels, face.mesh)
        return Source(picture, face, embedding), len(faces) > 1

    def swap(
        self, target: Picture, faces: Sequence[Face], source: Source, trace: Trace
    ) -> tuple[NDArray[np.uint8], list[tuple[Caution, ...]]]:
        """Put the source's face onto each of `faces`, one after the other on one canvas.

        Args:
            target: the photo to change; it stays as it is.
            faces: which of its faces.
            source: the person to put in.
            trace: gets the span `swap`.

        Returns:
            uint8 [H, W, 3] RGB, equal to the target outside the faces' boxes, and the swapper's
            cautions for each face.
        """
        with trace.span("swap"):
            canvas = target.pixels.copy()
            cautions = [self.swapper.swap(canvas, face, source, gray=target.gray) for face in faces]
        return canvas, cautions

    def judge(
        self,
        canvas: NDArray[np.uint8],
        faces: Sequence[Face],
        cautions: Sequence[tuple[Caution, ...]],
        source: Source,
        trace: Trace,
    ) -> list[SwappedFace]:
        """Measure how well each swap worked, by the identity model on the result.

        Args:
            canvas: uint8 [H, W, 3] RGB, the result of `swap`.
            faces: the faces that were swapped.
            cautions: the swapper's own for each of them.
            source: the person who was put in.
            trace: gets the span `judge`.
        """
        judged = []
        with trace.span("judge"):
            swapped = self.models.identity.embed_all(canvas, [face.mesh for face in faces])
            for face, own, now in zip(faces, cautions, swapped, strict=True):
                original = embedding_of(face)
                after = distance(now, source.embedding)
                low = (Caution.LOW_SIMILARITY,) if after > GOOD_SWAP else ()
                before = distance(original, source.embedding)
                judged.append(SwappedFace(face, before, after, distance(now, original), own + low))
        return judged


def _enclosing(fitted: Fitted, size: tuple[int, int]) -> Box:
    """Whole pixels inside the image around the detection and the mesh."""
    box, points = fitted.detection.box, fitted.mesh[:, :2]
    low = np.floor(np.minimum(points.min(0), (box.left, box.top)))
    high = np.ceil(np.maximum(points.max(0), (box.right, box.bottom)))
    return Box(*np.clip((*low, *high), 0, (*size, *size)).astype(int).tolist())
