"""The steps that videos and animations share: which faces are meant, and every frame swapped."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from function.faces.face import embedding_of
from function.faces.select import Way, choose
from function.problems import NoFaceError, Problem
from function.quality_warning import QualityWarning
from function.request_context import current
from function.telemetry.timings import Timings
from function.video.ordered_pipeline import in_order
from function.video.track import TargetPerson, Targets, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from function.faces.face import Box, Face
    from function.faces.options import SwapOptions
    from function.faces.person import People
    from function.faces.pipeline import Pipeline, SwappedFace
    from function.faces.select import Selection
    from function.images.picture import Picture
    from function.requests import ProgressCallback
    from function.trust.case import Case
    from function.video.ordered_pipeline import Run

_SEARCHED = 10
"""Until there are faces to choose from, they are searched for in one of so many frames."""


class SwappableFrame(Protocol):
    """One frame: a picture that can be changed."""

    @property
    def picture(self) -> Picture:
        """Its pixels, upright."""
        ...

    @property
    def at(self) -> float:
        """When it is shown, in seconds."""
        ...

    def put(self, canvas: NDArray[np.uint8], boxes: Sequence[Box]) -> None:
        """Replace the pixels in these boxes by those of the canvas, uint8 [H, W, 3] RGB."""
        ...


@dataclass(slots=True)
class FrameTask:
    """A frame on its way.

    Attributes:
        frame: the frame.
        faces: those to swap.
        judge: whether the result is compared with the source.
        shot: whether it begins a shot, so that its content is looked at.
        warnings: what may look wrong.
    """

    frame: SwappableFrame
    faces: list[Face]
    judge: bool
    shot: bool
    warnings: frozenset[QualityWarning] = frozenset()


class ClipSwapper:
    """Swaps faces in frame after frame of one clip.

    Args:
        pipeline: the steps.
        run: does steps in threads.
        people: the people to put in.
        selection: which faces.
        references: float32 [n], the identities of people to replace, by name.
        options: how the faces are to be.
        case: what the clip passes through besides being made.
        ahead: how many frames are in work at once.
        progress: called in the event loop after each frame; see `ProgressCallback`.

    Attributes:
        run, people, case, progress: as given.
        source: the face of the first of the people, on its photo.
        judged: the faces of the first frame that had some.
        swapped: in how many frames there were faces.
        most_faces: how many there were at most in one frame.
        warnings: what may look wrong.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        people: People,
        selection: Selection,
        references: Mapping[str, NDArray[np.float32]],
        *,
        options: SwapOptions,
        case: Case,
        ahead: int,
        progress: ProgressCallback,
    ) -> None:
        self._pipeline, self.people, self._options = pipeline, people, options
        self._selection, self._references = selection, references
        self.source = next(iter(people.faces.values()))
        self.case = case
        self.run, self._ahead, self.progress = run, ahead, progress
        self._loop = asyncio.get_running_loop()
        self._first = True
        self.judged: Sequence[SwappedFace] = ()
        self.swapped = self.most_faces = 0
        self.warnings: set[QualityWarning] = set()

    async def targets(self, read: Callable[[], SwappableFrame | None]) -> Targets:
        """The people that the selection means.

        Args:
            read: gives the next frame, or None.

        Raises:
            Problem: there is no such face in the first frame that shows faces, or none at all.
        """
        selection, references = self._selection, self._references
        if selection.way is Way.ALL:
            return Targets()
        known = [TargetPerson(references[str(like.face)], like.source) for like in selection.likes]
        if known and not selection.places:
            return Targets(tuple(known))
        first = replace(selection, pairs=selection.places)
        number = 0
        while (frame := await self.run(read)) is not None:
            if number % _SEARCHED == 0 and (faces := await self.run(self._found, frame.picture)):
                chosen = choose(faces, first, {}, self._pipeline.models.identity.metric)
                self.case.cast(chosen)
                seen = [TargetPerson(embedding_of(face), face.person) for face in chosen]
                return Targets((*seen, *known))
            number += 1
        raise self.nobody()

    def _found(self, picture: Picture) -> list[Face]:
        return self._pipeline.find(picture, Timings(), identify=True, quick=True)

    def begin(self) -> None:
        """Begin a part: count anew, and judge its first frame with faces."""
        self._first, self.swapped, self.most_faces, self.warnings = True, 0, 0, set()

    def tracker(self, targets: Targets, rate: float) -> Tracker:
        """A tracker for a clip of about `rate` frames per second."""
        return Tracker(self._pipeline, targets, rate, quick=current.get().quick_search)

    async def swap_frames(
        self,
        tracker: Tracker,
        read: Callable[[], SwappableFrame | None],
        write: Callable[[Any], None],
        done: int,
        total: int,
    ) -> int:
        """Swap the faces in all frames that `read` gives, and hand them to `write` in order.

        Args:
            tracker: finds the faces to swap.
            read: gives the next frame, or None.
            write: gets each frame with its faces swapped.
            done: how many frames of the clip came before, for `progress`.
            total: how many the clip has, for `progress`.

        Returns:
            How many frames there were.
        """
        count = done

        def follow() -> FrameTask | None:
            frame = read()
            if frame is None:
                return None
            faces = tracker.follow(frame.picture, frame.at, Timings())
            judge, self._first = bool(faces) and self._first, self._first and not faces
            shot = self.case.begins_shot(frame.picture)
            return FrameTask(frame, faces, judge, shot)

        def keep(task: FrameTask) -> None:
            nonlocal count
            write(task.frame)
            self.warnings |= task.warnings
            self.swapped += bool(task.faces)
            self.most_faces = max(self.most_faces, len(task.faces))
            count += 1
            self._loop.call_soon_threadsafe(self.progress, count, max(count, total))

        return await in_order(self.run, follow, self._change, keep, self._ahead)

    def _change(self, task: FrameTask) -> FrameTask:
        """Look at one frame, swap its faces and mark it."""
        pipeline, picture, case, timings = (
            self._pipeline,
            task.frame.picture,
            self.case,
            Timings(),
        )
        faces: list[Face] = []
        if task.shot:
            case.look_at_frame(picture)
        if task.judge or (task.shot and task.faces and case.knows_people):
            were = pipeline.models.identity.embed(picture.pixels, task.faces)
            faces = [replace(f, embedding=e) for f, e in zip(task.faces, were, strict=True)]
            case.check_people(picture, faces)
        canvas, own = picture.pixels, list[tuple[QualityWarning, ...]]()
        if task.faces:
            canvas, own = pipeline.swap(
                picture, task.faces, self.people.sources, timings, self._options
            )
        marked = case.mark_frame(canvas, task.faces, task.frame.at)
        found = {warning for each in own for warning in each}
        if task.judge:
            judged = pipeline.judge(marked.pixels, faces, own, self.people.sources, timings)
            self.judged = self.judged or judged
            found |= {warning for face in judged for warning in face.warnings}
        if marked.boxes:
            task.frame.put(marked.pixels, marked.boxes)
        task.warnings = frozenset(found)
        return task

    def nobody(self) -> Problem:
        """The problem of a clip without anybody to swap."""
        if self._references:
            return Problem("no_match", "Nobody in the target looks like the reference.")
        return NoFaceError("No face was found in the target.", image="target")
