"""From pixels to faces to swapped pixels: every step of a swap, without bytes and without HTTP.

Everything here runs in the calling thread and keeps no state, so that many threads may use one
pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from function.faces import pose
from function.faces.face import Box, Face, embedding_of
from function.faces.options import DEFAULT, SwapOptions
from function.faces.select import largest
from function.faces.swappers.protocol import SourceFace
from function.problems import Problem
from function.quality_warning import QualityWarning
from function.request_context import current

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from function.faces.face import Fitted
    from function.faces.models import Models
    from function.faces.swappers.protocol import Swapper
    from function.images.picture import Picture
    from function.telemetry.timings import Timings


_CROWD = 24
"""In a photo of one person so many other faces are enough: the largest of those found is taken."""


@dataclass(frozen=True, slots=True)
class SwappedFace:
    """One face of the target after the swap.

    Attributes:
        face: the face as it was in the target.
        before: identity distance of the original face to the source.
        after: identity distance of the swapped face to the source.
        kept: identity distance of the swapped face to the original face.
        warnings: what may look wrong about this face.
    """

    face: Face
    before: float
    after: float
    kept: float
    warnings: tuple[QualityWarning, ...]


def check_count(count: int, most: int | None) -> None:
    """Refuse more faces than are paid for.

    Raises:
        Problem: `too_many_faces`.
    """
    if most is not None and count > most:
        raise Problem(
            "too_many_faces",
            f"The photo shows more than {most} faces, which is as many as its tokens cover.",
            limit=most,
        )


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The steps of a swap over one set of models and one swapper."""

    models: Models
    swapper: Swapper

    def find(
        self,
        picture: Picture,
        timings: Timings,
        *,
        identify: bool,
        quick: bool = False,
        most: int | None = None,
    ) -> list[Face]:
        """Every face of a picture in the documented order (left to right), with its pose.

        Args:
            picture: the photo.
            timings: gets spans of `detect`, `landmarks` and `identity`.
            identify: also compute identity embeddings.
            quick: search the whole photo only, where small faces may be missed.
            most: how many faces it may show; None for any number.

        Raises:
            Problem: `too_many_faces`.
        """
        faces = self._search(picture, timings, quick=quick, most=most)
        check_count(len(faces), most)
        if not identify:
            return faces
        with timings.span("identity"):
            found = self.models.identity.embed(picture.pixels, faces)
        return [replace(face, embedding=own) for face, own in zip(faces, found, strict=True)]

    def _search(
        self, picture: Picture, timings: Timings, *, quick: bool, most: int | None
    ) -> list[Face]:
        models, pixels = self.models, picture.pixels
        fitted = models.detect.faces(pixels, models.fit, timings, quick=quick, most=most)
        return [self.face(index, each, picture.size) for index, each in enumerate(fitted)]

    def face(self, index: int, fitted: Fitted, size: tuple[int, int]) -> Face:
        """A face with its box and pose, from its points.

        Args:
            index: its place in the documented order.
            fitted: its points.
            size: (width, height) of the picture.
        """
        mesh = fitted.mesh
        return Face(
            index=index,
            box=self._enclosing(fitted, size),
            detection=fitted.detection,
            five=fitted.five,
            presence=fitted.presence,
            pose=pose.of_five(fitted.five) if mesh is None else pose.estimate(mesh),
            mesh=mesh,
            outline=fitted.outline,
        )

    def portrait(self, picture: Picture, timings: Timings) -> tuple[SourceFace | None, bool]:
        """The person whom a photo shows: its largest face.

        Args:
            picture: the photo.
            timings: gets spans of `detect`, `landmarks` and `identity`.

        Returns:
            None when there is no face, and whether there are more faces.
        """
        faces = self._search(picture, timings, quick=False, most=_CROWD)
        if not faces:
            return None, False
        face = largest(faces)
        with timings.span("identity"):
            (embedding,) = self.models.identity.embed(picture.pixels, [face])
        return SourceFace(picture, face, embedding), len(faces) > 1

    def swap(
        self,
        target: Picture,
        faces: Sequence[Face],
        people: Mapping[str, SourceFace],
        timings: Timings,
        options: SwapOptions = DEFAULT,
    ) -> tuple[NDArray[np.uint8], list[tuple[QualityWarning, ...]]]:
        """Put somebody's face onto each of `faces`, and enhance them, on one canvas.

        Args:
            target: the photo to change; it stays as it is.
            faces: which of its faces.
            people: those to put in, by the name in `Face.person`.
            timings: gets the spans `swap`, with its parts, and `enhance`.
            options: how the result is to be.

        Returns:
            uint8 [H, W, 3] RGB, equal to the target outside the faces' boxes, and the swapper's
            warnings for each face.

        Raises:
            Problem: `too_many_faces`.
        """
        check_count(len(faces), current.get().max_faces)
        with timings.span("swap"):
            canvas = target.pixels.copy()
            sources = [people[face.person] for face in faces]
            warnings = self.swapper.swap_all(
                canvas, faces, sources, options, gray=target.gray, timings=timings
            )
        if (enhancer := self.models.enhance) and options.enhance:
            with timings.span("enhance"):
                enhancer.enhance(canvas, faces, options, self.models.occlusion, gray=target.gray)
        return canvas, warnings

    def judge(
        self,
        canvas: NDArray[np.uint8],
        faces: Sequence[Face],
        warnings: Sequence[tuple[QualityWarning, ...]],
        people: Mapping[str, SourceFace],
        timings: Timings,
    ) -> list[SwappedFace]:
        """Measure how well each swap worked, by the identity model on the result.

        Args:
            canvas: uint8 [H, W, 3] RGB, the result of `swap`.
            faces: the faces that were swapped.
            warnings: the swapper's own for each of them.
            people: those who were put in; see `swap`.
            timings: gets the span `judge`.
        """
        judged = []
        metric = self.models.identity.metric
        with timings.span("judge"):
            swapped = self.models.identity.embed(canvas, faces)
            for face, own, now in zip(faces, warnings, swapped, strict=True):
                original, source = embedding_of(face), people[face.person].embedding
                after = metric.between(now, source)
                low = (QualityWarning.LOW_SIMILARITY,) if after > metric.good_swap else ()
                before = metric.between(original, source)
                kept = metric.between(now, original)
                judged.append(SwappedFace(face, before, after, kept, own + low))
        return judged

    def _enclosing(self, fitted: Fitted, size: tuple[int, int]) -> Box:
        """Whole pixels inside the image around all that is known, and may change, of a face."""
        box = fitted.detection.box
        points = [
            np.array([(box.left, box.top), (box.right, box.bottom)], np.float32),
            fitted.five if fitted.outline is None else fitted.outline,
            self.swapper.reach(fitted),
        ]
        if enhancer := self.models.enhance:
            points.append(enhancer.reach(fitted.five))
        every = np.concatenate(points)
        low, high = np.floor(every.min(0)), np.ceil(every.max(0))
        return Box(*np.clip((*low, *high), 0, (*size, *size)).astype(int).tolist())
