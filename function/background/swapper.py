"""What runs beside the requests: swaps that nobody waits for, and who makes them."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from function import tasks
from function.problems import Problem
from function.request_context import Lane, current
from function.requests import ClipRequest, SwapResult
from function.telemetry import trace_context
from function.telemetry.spans import Span
from function.telemetry.timings import Timings
from function.video.parts import Doubled, Folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from function.admission.admission import Admission
    from function.background.events.processor import EventProcessor
    from function.background.jobs.runner import JobRunner
    from function.images.kinds import FileKind
    from function.requests import ClipProgress, SwapRequest
    from function.service.service import Service
    from function.storage.storage import Storage
    from warmup.replica import Replica


@dataclass(frozen=True, slots=True)
class BackgroundSwapper:
    """Swaps for nobody who waits, in the lane of the running request."""

    service: Service
    admission: Admission
    replica: Replica

    async def swap(self, wanted: SwapRequest, watch: ClipProgress | None = None) -> SwapResult:
        """See `Swap`."""
        context, trace = current.get(), Timings()
        context.max_faces = self.admission.prices.covers(context.paid or 0)
        kind = wanted.target.clip
        video = kind if kind and not kind.still else None
        with (
            self.admission.load.enter(context, typical=not video),
            Span("target", parent=trace_context.current.get()) as span,
        ):
            span.stages = trace
            if video:
                return await self._video(wanted, video, trace, watch)
            return await self.service.swap(wanted, trace)

    async def _video(
        self, wanted: SwapRequest, kind: FileKind, trace: Timings, watch: ClipProgress | None
    ) -> SwapResult:
        """Swap a video that is in memory by way of files."""
        if wanted.format:
            raise Problem("bad_value", f"A video cannot become {wanted.format}.", field="format")
        with TemporaryDirectory(prefix="ember-video-") as folder:
            target, out = Path(folder, "target"), Path(folder, f"out{kind.suffix}")
            await asyncio.to_thread(target.write_bytes, wanted.target.data)
            clip = ClipRequest(
                wanted.sources,
                target,
                out,
                wanted.faces,
                wanted.like,
                quality=wanted.quality,
                options=wanted.options,
            )
            progress = watch.progress if watch else lambda *_: None
            parts = Doubled(Folder(Path(folder, "parts")), watch) if watch else None
            told = await self.service.clip(clip, trace, progress=progress, parts=parts)
            image = await asyncio.to_thread(out.read_bytes)
        return SwapResult(
            image, told.media_type, told.size, (), told.source, told.warnings, told.most_faces
        )

    def lanes(self) -> list[Lane]:
        """The lanes whose jobs may be begun with."""
        if not self.replica.ready:
            return []
        return [lane for lane in Lane if self.admission.pause_s(lane) is None]


class BackgroundTasks:
    """What runs beside the requests, and what they share.

    Args:
        desk: takes over what other replicas have left; None where no events are taken in.
        works: does jobs.
        storage: is closed at the end.
        patience_s: how long requests, events and jobs together may take to end.
    """

    def __init__(
        self, desk: EventProcessor | None, works: JobRunner, storage: Storage, patience_s: float
    ) -> None:
        self._desk, self._works, self._storage = desk, works, storage
        self._patience_s, self._until = patience_s, math.inf

    async def stopping(self, _: object) -> None:
        """From here on everything ends."""
        self._until = time.monotonic() + self._patience_s

    async def running(self, _: object) -> AsyncIterator[None]:
        """Begin; at the end, let what requests have left behind come to its own."""
        going_on = [asyncio.create_task(self._works.run())]
        if self._desk:
            going_on.append(asyncio.create_task(self._desk.take_over()))
        yield
        await tasks.end(*going_on)
        left_s = max(0.0, min(self._patience_s, self._until - time.monotonic()))
        closing = [self._works.close(left_s)]
        if self._desk:
            closing.append(self._desk.close(left_s))
        await asyncio.gather(*closing)
        await self._storage.close()
