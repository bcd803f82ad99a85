"""Swaps that no connection waits for, those of jobs and events."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from function.problems import Problem
from function.request_context import Lane, current
from function.requests import ClipRequest, SwapResult
from function.telemetry import trace_context
from function.telemetry.spans import Span
from function.telemetry.timings import Timings
from function.video.parts import Doubled, Folder

if TYPE_CHECKING:
    from function.admission.admission import Admission
    from function.images.kinds import FileKind
    from function.requests import ClipProgress, SwapRequest
    from function.service.service import Service
    from warmup.replica import Replica


@dataclass(frozen=True, slots=True)
class BackgroundSwapper:
    """Makes swaps in the lane of the running job or event.

    Attributes:
        service: makes them.
        admission: learns how long they take.
        replica: says whether any may be begun.
    """

    service: Service
    admission: Admission
    replica: Replica

    async def swap(self, wanted: SwapRequest, watch: ClipProgress | None = None) -> SwapResult:
        """A swap of a photo, an animation or a video; `watch` follows a video and keeps its parts.

        Raises:
            Problem: as `Service.swap` and `Service.clip`.
        """
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
                wanted.likes,
                quality=wanted.quality,
                options=wanted.options,
                consent=wanted.consent,
                label=wanted.label,
            )
            progress = watch.progress if watch else lambda *_: None
            parts = Doubled(Folder(Path(folder, "parts")), watch) if watch else None
            made = await self.service.clip(clip, trace, progress=progress, parts=parts)
            image = await asyncio.to_thread(out.read_bytes)
        return SwapResult(
            image,
            made.media_type,
            made.size,
            (),
            made.source,
            made.warnings,
            made.most_faces,
            made.marks,
        )

    def lanes(self) -> list[Lane]:
        """The lanes whose jobs may be begun now."""
        if not self.replica.ready:
            return []
        return [lane for lane in Lane if self.admission.pause_s(lane) is None]
