"""A whole clip: part after part, each kept when it is done, and one file again in the end."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from function import __version__
from function.images import kinds
from function.images.kinds import FileKind
from function.problems import Problem
from function.quality_warning import QualityWarning
from function.requests import ClipResult
from function.video.animation import swap_animation
from function.video.decoder import decoder
from function.video.parts import Folder

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from function.requests import ClipRequest, PartStore
    from function.video.clip_swapper import ClipSwapper
    from function.video.editable_frame import EditableFrame
    from function.video.limits import ClipLimits
    from function.video.reader import VideoFacts, VideoReader
    from function.video.track import Tracker
    from function.video.writer import Encoding

log = logging.getLogger("ember.video")

_FORM = 2
"""Of what a part says about itself."""

_FITS = {
    FileKind.MP4: {FileKind.MP4, FileKind.MOV, FileKind.MKV},
    FileKind.MOV: {FileKind.MP4, FileKind.MOV, FileKind.MKV},
    FileKind.MKV: {FileKind.MP4, FileKind.MOV, FileKind.MKV},
    FileKind.WEBM: {FileKind.WEBM, FileKind.MKV},
}
"""What a video of each kind can become without a change to its sound, mostly."""


async def swap_clip(
    studio: ClipSwapper,
    wanted: ClipRequest,
    like: NDArray[np.float32] | None,
    limits: ClipLimits,
    parts: PartStore | None,
) -> ClipResult:
    """Swap the faces of a clip.

    Args:
        studio: swaps frames.
        wanted: what is wanted.
        like: float32 [128], the person meant by `faces=like`.
        limits: what the clip may have.
        parts: keeps what is done, for another try at the same order; None where there is none.

    Raises:
        Problem: the clip cannot be used, a face is missing, or a decoder is.
    """
    kind = await studio.run(_kind, wanted.target)
    if kind.still:
        data = await studio.run(_read, wanted.target, limits)
        image, result = await swap_animation(
            studio,
            data,
            (kind, wanted.kind or kind),
            wanted.faces,
            like,
            quality=wanted.quality,
            limits=limits,
        )
        await studio.run(wanted.out.write_bytes, image)
        return result
    if wanted.kind and wanted.kind not in _FITS[kind]:
        raise Problem(
            "bad_value",
            f"A {kind.suffix} file can become {', '.join(sorted(k.suffix for k in _FITS[kind]))}.",
            field="format",
        )
    with decoder():
        await studio.run(import_module, "function.video.writer")
    if parts:
        return await _Video(studio, wanted, limits, parts, kind).make(like)
    with TemporaryDirectory(prefix="ember-clip-") as folder:
        return await _Video(studio, wanted, limits, Folder(Path(folder)), kind).make(like)


@dataclass(slots=True)
class _Part:
    """A part that is done: its name, and the times of its frames in ticks."""

    name: str
    times: list[int]


class _Video:
    """One order for a video."""

    def __init__(
        self,
        studio: ClipSwapper,
        wanted: ClipRequest,
        limits: ClipLimits,
        parts: PartStore,
        kind: FileKind,
    ) -> None:
        self._studio, self._order, self._limits = studio, wanted, limits
        self._parts, self._kind = parts, kind
        self._done = self._swapped = self._most_faces = 0
        self._cautions: set[QualityWarning] = set()
        self._readers: list[VideoReader] = []

    async def make(self, like: NDArray[np.float32] | None) -> ClipResult:
        """Do all parts that are not done yet, and put all together."""
        try:
            return await self._made(like)
        finally:
            for reader in self._readers:
                await asyncio.shield(asyncio.to_thread(reader.close))

    async def _made(self, like: NDArray[np.float32] | None) -> ClipResult:
        from function.video.reader import examine
        from function.video.writer import Encoding

        run, wanted, source = self._studio.run, self._order, self._order.target
        facts = await run(examine, source, self._kind, self._limits)
        encoding = Encoding(facts, wanted.kind or self._kind, wanted.quality)
        await run(_joinable, source, encoding)
        digest = await run(_digest, wanted, encoding.kind)
        look = _plates(await self._reader(), facts)
        cast = await self._studio.cast(wanted.faces, like, look)
        tracker = self._studio.tracker(cast, float(facts.rate))
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
                data = await self._part(encoding, tracker, partial(reader.next, end))
                await self._parts.put(name, data)
            else:
                reader = None
                log.info("a part of a clip is done already", extra={"part": number})
            told = await run(_told, data)
            self._count(told, facts)
            tracker.resume(told["tracker"])
            parts.append(_Part(name, [packet[0] for packet in told["packets"]]))
        if not self._swapped:
            raise self._studio.nobody(wanted.faces)
        await self._join(encoding, parts)
        if facts.alpha:
            self._cautions.add(QualityWarning.ALPHA_FLATTENED)
        if facts.sound_left_out:
            self._cautions.add(QualityWarning.SOUND_LEFT_OUT)
        return ClipResult(
            media_type=str(encoding.kind),
            size=facts.upright,
            frames=self._done,
            seconds=facts.seconds,
            swapped=self._swapped,
            most_faces=self._most_faces,
            warnings=tuple(each for each in QualityWarning if each in self._cautions),
            source=self._studio.source.face,
        )

    async def _reader(self) -> VideoReader:
        """The clip from its beginning; closed in the end."""
        from function.video.reader import VideoReader

        reader = await self._studio.run(VideoReader, self._order.target, self._kind, self._limits)
        self._readers.append(reader)
        return reader

    async def _part(self, encoding: Encoding, tracker: Tracker, decode: Callable[[], Any]) -> bytes:
        """Swap and encode the frames that are decoded next."""
        from function.video.editable_frame import EditableFrame
        from function.video.writer import PartWriter

        studio, facts = self._studio, encoding.facts
        writer = await studio.run(PartWriter, encoding)
        studio.begin()

        def look() -> EditableFrame | None:
            frame = decode()
            return None if frame is None else EditableFrame(frame, facts)

        def take(plate: EditableFrame) -> None:
            writer.add(plate.frame)

        await studio.shoot(tracker, look, take, self._done, facts.frames)
        return await studio.run(
            writer.finish,
            tracker=tracker.state(),
            swapped=studio.swapped,
            most_faces=studio.most_faces,
            warnings=sorted(studio.warnings),
        )

    def _count(self, told: dict[str, Any], facts: VideoFacts) -> None:
        """Count a part as done."""
        self._done += len(told["packets"])
        self._swapped += told["swapped"]
        self._most_faces = max(self._most_faces, told["most_faces"])
        self._cautions |= {QualityWarning(code) for code in told["cautions"]}
        self._studio.progress(self._done, max(self._done, facts.frames))

    async def _join(self, encoding: Encoding, parts: list[_Part]) -> None:
        """Write the file, which is there whole or not at all."""
        from function.video.writer import Joiner

        run, wanted = self._studio.run, self._order
        times = [time for part in parts for time in part.times]
        unfinished = wanted.out.with_name(f".{wanted.out.name}.{os.getpid()}.part")
        try:
            joiner = await run(Joiner, unfinished, wanted.target, encoding, times)
            for part in parts:
                data = await self._parts.get(part.name)
                if data is None:
                    raise RuntimeError(f"part {part.name} is gone")
                await run(joiner.add, data)
            await run(joiner.close)
            await asyncio.to_thread(unfinished.replace, wanted.out)
        finally:
            unfinished.unlink(missing_ok=True)


def _kind(path: Path) -> FileKind:
    """What a clip is.

    Raises:
        Problem: it is none, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(kinds.HEAD)
            kind = kinds.video(head)
            if kind is None and head.startswith((b"GIF8", b"RIFF")):
                kind = kinds.animation(head + file.read())
    except OSError as error:
        raise Problem("bad_clip", f"The target cannot be read: {error.strerror}.") from None
    if kind is None:
        raise Problem(
            "unsupported_media_type",
            "The target is no clip that Ember knows.",
            image="target",
            hint="Send MP4, QuickTime, WebM or Matroska, or an animated GIF or WebP.",
        )
    return kind


def _read(path: Path, limits: ClipLimits) -> bytes:
    limits.check(size=path.stat().st_size)
    return path.read_bytes()


def _joinable(source: Path, encoding: Encoding) -> None:
    """See that what is made can be joined, before any of it is.

    Raises:
        Problem: `bad_value`, it cannot.
    """
    from function.video.writer import Joiner

    Joiner(BytesIO(), source, encoding, ()).drop()


def _plates(reader: VideoReader, facts: VideoFacts) -> Callable[[], EditableFrame | None]:
    """The frames that a reader gives."""
    from function.video.editable_frame import EditableFrame

    def look() -> EditableFrame | None:
        frame = reader.next()
        return None if frame is None else EditableFrame(frame, facts)

    return look


def _told(part: bytes) -> dict[str, Any]:
    """What a part says about itself."""
    from function.video.writer import part_facts

    return part_facts(part)


def _digest(wanted: ClipRequest, kind: FileKind) -> str:
    """Tells parts of this order from those of any other, and of another form."""
    options = __version__, _FORM, kind, wanted.faces, wanted.quality, wanted.options
    told = hashlib.sha256(repr(options).encode())
    for upload in (*wanted.sources, *([wanted.like] if wanted.like else [])):
        told.update(hashlib.sha256(upload.data).digest())
    with wanted.target.open("rb") as file:
        told.update(hashlib.file_digest(file, "sha256").digest())
    return told.hexdigest()[:32]
