"""One video: swapped part after part, each kept when it is done, and joined to one file."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from function import __version__
from function.quality_warning import QualityWarning
from function.requests import ClipResult
from function.video.editable_frame import EditableFrame
from function.video.facts import examine
from function.video.looks import looks
from function.video.reader import VideoReader
from function.video.writer import Encoding, Joiner, PartWriter, part_facts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from function.images.kinds import FileKind
    from function.requests import ClipRequest, PartStore
    from function.video.clip_swapper import ClipSwapper
    from function.video.facts import VideoFacts
    from function.video.limits import ClipLimits
    from function.video.track import Tracker

log = logging.getLogger("ember.video")

_FORMAT = 5
"""The version of the format of parts."""


@dataclass(slots=True)
class _Part:
    """A part that is done: its name, and the times of its frames in ticks."""

    name: str
    times: list[int]


class VideoSwap:
    """One request for a video.

    Args:
        swapper: swaps frames.
        wanted: the request.
        limits: what the video may have.
        parts: keeps finished parts.
        kind: of the target.
    """

    def __init__(
        self,
        swapper: ClipSwapper,
        wanted: ClipRequest,
        limits: ClipLimits,
        parts: PartStore,
        kind: FileKind,
    ) -> None:
        self._swapper, self._wanted, self._limits = swapper, wanted, limits
        self._parts, self._kind = parts, kind
        self._done = self._swapped = self._most_faces = 0
        self._warnings: set[QualityWarning] = set()
        self._readers: list[VideoReader] = []

    async def make(self) -> ClipResult:
        """Swap all parts that are not done yet, and join all of them."""
        try:
            return await self._make()
        finally:
            for reader in self._readers:
                await asyncio.shield(asyncio.to_thread(reader.close))

    async def _make(self) -> ClipResult:
        run, wanted = self._swapper.run, self._wanted
        facts = await run(examine, wanted.target, self._kind, self._limits)
        encoding = Encoding(facts, wanted.kind or self._kind, wanted.quality)
        self._swapper.case.check_signable(str(encoding.kind))
        await run(_check_joinable, wanted.target, encoding)
        digest = await run(_digest, wanted, encoding.kind, self._swapper.case.recipe)
        await self._look_ahead(facts)
        read = _frames(await self._reader(), facts)
        targets = await self._swapper.targets(read)
        tracker = self._swapper.tracker(targets, float(facts.rate))
        reader: VideoReader | None = None
        parts: list[_Part] = []
        for number, start in enumerate(facts.starts):
            name = f"{digest}-{number:04}"
            data = await self._parts.get(name)
            if data is None:
                if reader is None:
                    reader = await self._reader()
                    if number:
                        await run(reader.seek, start)
                end = facts.starts[number + 1] if number + 1 < len(facts.starts) else None
                data = await self._part(encoding, tracker, _frames(reader, facts, end))
                await self._parts.put(name, data)
            else:
                reader = None
                log.info("a part of a clip is done already", extra={"part": number})
            head = await run(part_facts, data)
            self._count(head, facts)
            tracker.resume(head["tracker"])
            parts.append(_Part(name, [packet[0] for packet in head["packets"]]))
        if not self._swapped:
            raise self._swapper.nobody()
        await self._join(encoding, parts)
        if facts.alpha:
            self._warnings.add(QualityWarning.ALPHA_FLATTENED)
        if facts.sound_left_out:
            self._warnings.add(QualityWarning.SOUND_LEFT_OUT)
        return ClipResult(
            media_type=str(encoding.kind),
            size=facts.upright,
            frames=self._done,
            seconds=facts.seconds,
            swapped=self._swapped,
            most_faces=self._most_faces,
            warnings=tuple(each for each in QualityWarning if each in self._warnings),
            source=self._swapper.source,
        )

    async def _look_ahead(self, facts: VideoFacts) -> None:
        """Look at frames from all over the clip before any work is done on it."""
        reader, case = await self._reader(), self._swapper.case

        def look() -> None:
            for picture in looks(reader, facts):
                case.look_at_frame(picture)

        if case.looks:
            await self._swapper.run(look)

    async def _reader(self) -> VideoReader:
        """A reader at the beginning of the clip, which `make` closes."""
        reader = await self._swapper.run(VideoReader, self._wanted.target, self._kind, self._limits)
        self._readers.append(reader)
        return reader

    async def _part(
        self, encoding: Encoding, tracker: Tracker, read: Callable[[], EditableFrame | None]
    ) -> bytes:
        """Swap and encode the frames that `read` gives; see `PartWriter.finish`."""
        swapper = self._swapper
        writer = await swapper.run(PartWriter, encoding)
        swapper.begin()

        def write(frame: EditableFrame) -> None:
            writer.add(frame.frame)

        await swapper.swap_frames(tracker, read, write, self._done, encoding.facts.frames)
        return await swapper.run(
            writer.finish,
            tracker=tracker.state(),
            swapped=swapper.swapped,
            most_faces=swapper.most_faces,
            warnings=sorted(swapper.warnings),
        )

    def _count(self, part: dict[str, Any], facts: VideoFacts) -> None:
        """Count a part as done."""
        self._done += len(part["packets"])
        self._swapped += part["swapped"]
        self._most_faces = max(self._most_faces, part["most_faces"])
        self._warnings |= {QualityWarning(code) for code in part["warnings"]}
        self._swapper.progress(self._done, max(self._done, facts.frames))

    async def _join(self, encoding: Encoding, parts: list[_Part]) -> None:
        """Write the file, which is there whole or not at all."""
        run, wanted = self._swapper.run, self._wanted
        times = [time for part in parts for time in part.times]
        unfinished = wanted.out.with_name(f".{wanted.out.name}.{os.getpid()}.part")
        try:
            case = self._swapper.case
            joiner = await run(
                Joiner,
                unfinished,
                wanted.target,
                encoding,
                times,
                await run(lambda: case.statement),
            )
            for part in parts:
                data = await self._parts.get(part.name)
                if data is None:
                    raise RuntimeError(f"part {part.name} is gone")
                await run(joiner.add, data)
            await run(joiner.close)
            await run(case.sign_file, unfinished, str(encoding.kind))
            await asyncio.to_thread(unfinished.replace, wanted.out)
        finally:
            unfinished.unlink(missing_ok=True)


def _check_joinable(source: Path, encoding: Encoding) -> None:
    """Check before anything is swapped that the parts can be joined with the sound.

    Raises:
        Problem: `bad_value`, they cannot.
    """
    Joiner(BytesIO(), source, encoding, ()).drop()


def _frames(
    reader: VideoReader, facts: VideoFacts, end: int | None = None
) -> Callable[[], EditableFrame | None]:
    """A function that gives the next frame before `end`, in ticks, or None."""

    def read() -> EditableFrame | None:
        frame = reader.next(end)
        return None if frame is None else EditableFrame(frame, facts)

    return read


def _digest(wanted: ClipRequest, kind: FileKind, recipe: str) -> str:
    """A name for the parts of this request that no other request, version or format has.

    Args:
        wanted: the request.
        kind: what it becomes.
        recipe: how its frames are marked.
    """
    options = __version__, _FORMAT, kind, wanted.faces, wanted.quality, wanted.options, recipe
    digest = hashlib.sha256(repr(options).encode())
    for upload in (*wanted.sources, *wanted.likes):
        digest.update(upload.name.encode() + hashlib.sha256(upload.data).digest())
    with wanted.target.open("rb") as file:
        digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]
