"""The steps that videos and animations share: whose faces are meant, and every frame swapped."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from function.faces.face import embedding_of
from function.faces.select import Selection, Way, choose
from function.problems import NoFaceError, Problem
from function.request_context import current
from function.telemetry.timings import Timings
from function.video.ordered_pipeline import line
from function.video.track import Targets, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from function.faces.face import Box, Face
    from function.faces.options import SwapOptions
    from function.faces.pipeline import Pipeline, SwappedFace
    from function.faces.swappers.protocol import Source
    from function.images.picture import Picture
    from function.quality_warning import QualityWarning
    from function.requests import ProgressCallback
    from function.video.ordered_pipeline import Run

_LOOKED_AT = 10
"""To find out whose faces are meant, one in so many frames is looked at."""


class SwappableFrame(Protocol):
    """One frame: a picture that can be changed."""

    @property
    def picture(self) -> Picture:
        """It, upright."""
        ...

    @property
    def at(self) -> float:
        """When it is shown, in seconds."""
        ...

    def put(self, canvas: NDArray[np.uint8], boxes: Sequence[Box]) -> None:
        """Take over what was changed in these boxes."""
        ...


@dataclass(slots=True)
class FrameTask:
    """A frame with the faces to swap; they are judged in the first that has some."""

    frame: SwappableFrame
    faces: list[Face]
    judge: bool
    warnings: frozenset[QualityWarning] = frozenset()


class ClipSwapper:
    """Swaps faces in frame after frame of one clip.

    Args:
        pipeline: the steps.
        run: does steps in threads.
        source: the person to put in.
        options: how the faces are to be.
        ahead: how many frames are in work at once.
        progress: is told how many frames are done, and of how many; from the event loop.

    Attributes:
        run, source, progress: as given.
        judged: the faces of the first frame that had some.
        swapped: in how many frames there were faces.
        most_faces: how many there were at most in one frame.
        warnings: what may look wrong.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        source: Source,
        options: SwapOptions,
        *,
        ahead: int,
        progress: ProgressCallback,
    ) -> None:
        self._pipeline, self.source, self._look = pipeline, source, options
        self.run, self._ahead, self.progress = run, ahead, progress
        self._loop = asyncio.get_running_loop()
        self._first = True
        self.judged: Sequence[SwappedFace] = ()
        self.swapped = self.most_faces = 0
        self.warnings: set[QualityWarning] = set()

    async def cast(
        self,
        selection: Selection,
        like: NDArray[np.float32] | None,
        options: Callable[[], SwappableFrame | None],
    ) -> Targets:
        """Whose faces are meant.

        Args:
            selection: what the caller asked for.
            like: float32 [128], the person meant by `like`.
            options: gives the next frame.

        Raises:
            Problem: there is no such face in the first frame that shows faces, or none at all.
        """
        if selection.way is Way.ALL:
            return Targets()
        if selection.way is Way.LIKE:
            return Targets((like,) if like is not None else ())
        number = 0
        while (frame := await self.run(options)) is not None:
            if number % _LOOKED_AT == 0 and (faces := await self.run(self._found, frame.picture)):
                chosen = choose(faces, selection, None, self._pipeline.models.identity.metric)
                return Targets(tuple(embedding_of(face) for face in chosen))
            number += 1
        raise self.nobody(selection)

    def _found(self, picture: Picture) -> list[Face]:
        return self._pipeline.find(picture, Timings(), identify=True, quick=True)

    def begin(self) -> None:
        """Begin a part: count anew, and judge its first frame with faces."""
        self._first, self.swapped, self.most_faces, self.warnings = True, 0, 0, set()

    def tracker(self, cast: Targets, rate: float) -> Tracker:
        """Follows the faces of the clip."""
        return Tracker(self._pipeline, cast, rate, quick=current.get().quick_search)

    async def shoot(
        self,
        tracker: Tracker,
        options: Callable[[], SwappableFrame | None],
        take: Callable[[Any], None],
        done: int,
        total: int,
    ) -> int:
        """Swap the faces in all frames that `look` gives, and hand them to `take` in order.

        Returns:
            How many frames there were; `progress` was told of `done` and these, of `total`.
        """
        count = done

        def follow() -> FrameTask | None:
            frame = options()
            if frame is None:
                return None
            faces = tracker.follow(frame.picture, frame.at, Timings())
            judge, self._first = bool(faces) and self._first, self._first and not faces
            return FrameTask(frame, faces, judge)

        def keep(shot: FrameTask) -> None:
            nonlocal count
            take(shot.frame)
            self.warnings |= shot.warnings
            self.swapped += bool(shot.faces)
            self.most_faces = max(self.most_faces, len(shot.faces))
            count += 1
            self._loop.call_soon_threadsafe(self.progress, count, max(count, total))

        return await line(self.run, follow, self._change, keep, self._ahead)

    def _change(self, shot: FrameTask) -> FrameTask:
        """Swap the faces of one frame."""
        if not shot.faces:
            return shot
        pipeline, picture, source, trace = (
            self._pipeline,
            shot.frame.picture,
            self.source,
            Timings(),
        )
        canvas, own = pipeline.swap(picture, shot.faces, source, trace, self._look)
        found = {warning for each in own for warning in each}
        if shot.judge:
            were = pipeline.models.identity.embed(picture.pixels, shot.faces)
            faces = [replace(f, embedding=e) for f, e in zip(shot.faces, were, strict=True)]
            judged = pipeline.judge(canvas, faces, own, source, trace)
            self.judged = self.judged or judged
            found |= {warning for face in judged for warning in face.warnings}
        shot.frame.put(canvas, [face.box for face in shot.faces])
        shot.warnings = frozenset(found)
        return shot

    def nobody(self, selection: Selection) -> Problem:
        """There was nobody to swap in all of the clip."""
        if selection.way is Way.LIKE:
            return Problem("no_match", "Nobody in the target looks like the reference.")
        return NoFaceError("No face was found in the target.", image="target")
