"""From frames to the bytes of a part, and from parts to a file, with the sound as it was."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import av
import av.error
from av.codec.context import Flags
from av.packet import Packet

from function.images.kinds import FileKind
from function.problems import Problem
from function.trust.marking import metadata
from function.video.editable_frame import FORMAT
from function.video.reader import opened, readable
from function.video.sound import kept, shown

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from pathlib import Path

    from av.video.codeccontext import VideoCodecContext
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

    from function.trust.statement import Statement
    from function.video.facts import VideoFacts

_MUXERS = {
    FileKind.MP4: "mp4",
    FileKind.MOV: "mov",
    FileKind.WEBM: "webm",
    FileKind.MKV: "matroska",
}
_QUALITY = 90
"""Where the caller names none; as photos have it."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a video is written.

    Attributes:
        facts: of the original.
        kind: of the file that is made.
        quality: 1 to 100; None for a good one.
    """

    facts: VideoFacts
    kind: FileKind
    quality: int | None = None

    @property
    def codec(self) -> str:
        """The name of the encoder."""
        return "libvpx-vp9" if self.kind is FileKind.WEBM else "libx264"

    def open(self) -> VideoCodecContext:
        """An encoder; all that one gives are equal, so that parts of several make one video."""
        context = cast("VideoCodecContext", av.CodecContext.create(self.codec, "w"))
        self.set_up(context)
        context.open()
        return context

    def set_up(self, context: VideoCodecContext) -> None:
        """Make an encoder that is not open yet the one of this video."""
        facts = self.facts
        context.width, context.height = facts.size
        context.pix_fmt = FORMAT
        context.time_base, context.framerate = facts.time_base, facts.rate
        context.color_primaries, context.color_trc = facts.colour.primaries, facts.colour.transfer
        context.colorspace, context.color_range = facts.colour.matrix, 1 + facts.colour.full
        if facts.aspect:
            context.sample_aspect_ratio = facts.aspect
        context.thread_count = 1  # as many frames at once as there are CPUs, not more
        context.flags |= Flags.global_header
        worse = 100 - (self.quality or _QUALITY)
        if self.codec == "libx264":
            context.options = {"preset": "veryfast", "crf": f"{15 + worse * 0.35:.1f}"}
            return
        context.bit_rate = 0
        context.options = {
            "deadline": "realtime",
            "cpu-used": "6",
            "crf": str(round(20 + worse * 0.42)),
            "lag-in-frames": "0",
        }


def part_facts(data: bytes) -> dict[str, Any]:
    """The facts of a part, which stand before its packets; see `PartWriter.finish`."""
    return dict(json.loads(data[: data.index(b"\n")]))


class PartWriter:
    """Encodes the frames of one part."""

    def __init__(self, encoding: Encoding) -> None:
        self._context = encoding.open()
        self._packets: list[Packet[Any]] = []
        self._durations: dict[int, int] = {}

    def add(self, frame: VideoFrame) -> None:
        """Encode the next frame."""
        self._durations[frame.pts or 0] = frame.duration
        frame.pict_type = 0  # the encoder chooses
        self._packets += self._context.encode(frame)

    def finish(self, **facts: Any) -> bytes:
        """The part: a line of JSON with these facts, then the packets.

        Raises:
            RuntimeError: there is not one packet for each frame.
        """
        self._packets += self._context.encode(None)
        if len(self._packets) != len(self._durations):
            raise RuntimeError(f"{len(self._packets)} packets for {len(self._durations)} frames")
        packets = [
            (packet.pts, self._durations[packet.pts or 0], packet.is_keyframe, packet.size)
            for packet in self._packets
        ]
        head = json.dumps(facts | {"packets": packets}).encode()
        return b"\n".join((head, b"".join(bytes(packet) for packet in self._packets)))


class Joiner:
    """Puts parts and the sound of the original into a file. It encodes nothing.

    Args:
        out: the file to write, or an object to write into.
        source: the original.
        encoding: with which the parts were written.
        times: of all frames, in ticks, in any order.
        statement: what the file says of itself; None for nothing.

    Raises:
        Problem: `bad_value`, the sound does not fit into a file of that kind.
    """

    def __init__(
        self,
        out: Path | BytesIO,
        source: Path,
        encoding: Encoding,
        times: Iterable[int],
        statement: Statement | None = None,
    ) -> None:
        facts, kind = encoding.facts, encoding.kind
        self._tick, self._kind = facts.time_base, kind
        self._out, self._statement = out, statement
        tags = metadata.tags(kind, statement) if statement else {}
        flags = "+faststart+use_metadata_tags" if tags else "+faststart"
        context = encoding.open()
        held = context.reorder_depth if context.has_b_frames else 0
        self._decoding = _decoding_times(sorted(times), held)
        self._file = av.open(
            out if isinstance(out, BytesIO) else f"file:{out}",
            "w",
            format=_MUXERS[kind],
            container_options={"movflags": flags} if self._movie else {},
        )
        self._file.metadata.update(tags)
        self._stream = cast("VideoStream", self._file.add_stream(encoding.codec, rate=facts.rate))
        encoding.set_up(self._stream.codec_context)
        if facts.display:
            self._stream.set_display_matrix(facts.display)
        self._others = self._rest(source, facts.kind)
        self._next_other = next(self._others, None)
        try:
            self._file.start_encoding()
        except av.error.FFmpegError as error:
            if self._next_other is None:
                raise
            name = self._next_other.stream.codec_context.name
            raise _unfit(f"Sound of the kind {name}", kind) from error

    def add(self, part: bytes) -> None:
        """Add the next part."""
        at = part.index(b"\n") + 1
        for time, duration, key, size in part_facts(part)["packets"]:
            packet: Packet[Any] = Packet(part[at : at + size])
            at += size
            packet.stream = self._stream
            packet.time_base = self._tick
            packet.pts, packet.dts, packet.duration = time, next(self._decoding), duration
            packet.is_keyframe = key
            self._add_others(float(packet.dts * self._tick))
            self._file.mux(packet)

    def close(self) -> None:
        """Write what is left of the sound, and the end of the file."""
        self._add_others(float("inf"))
        self._file.close()
        if self._statement and self._movie and not isinstance(self._out, BytesIO):
            metadata.mark_file(self._out, self._statement)

    def drop(self) -> None:
        """Close both files, with nothing further written."""
        self._others.close()
        with suppress(av.error.FFmpegError):
            self._file.close()

    @property
    def _movie(self) -> bool:
        """Whether the file is an MP4 or a QuickTime file."""
        return self._kind in {FileKind.MP4, FileKind.MOV}

    def _add_others(self, until: float) -> None:
        """Write what comes before this time, in seconds."""
        while (packet := self._next_other) is not None:
            if packet.dts is not None and float(packet.dts * packet.time_base) > until:
                return
            self._file.mux(packet)
            self._next_other = next(self._others, None)

    def _rest(self, source: Path, kind: FileKind) -> Generator[Packet[Any]]:
        """The packets of sound and subtitles, for the streams that they now belong to."""
        with readable(), opened(source, kind) as file:
            streams = {}
            for stream in kept(file):
                try:
                    own = self._file.add_stream_from_template(stream)
                except ValueError:
                    if stream.type == "subtitle":
                        continue
                    name = stream.codec_context.name
                    raise _unfit(f"Sound of the kind {name}", self._kind) from None
                if language := stream.metadata.get("language"):
                    own.metadata["language"] = language
                streams[stream.index] = own
            if not streams:
                return
            packets = file.demux([file.streams[index] for index in streams])
            for packet in shown(packet for packet in packets if packet.dts is not None):
                packet.stream = streams[packet.stream_index]
                yield packet


def _unfit(what: str, kind: FileKind) -> Problem:
    return Problem(
        "bad_value",
        f"{what} does not fit into {kind.suffix}; Ember keeps sound as it is.",
        field="format",
        hint="Keep the kind of the target, or write .mkv.",
    )


def _decoding_times(times: Sequence[int], held: int) -> Iterator[int]:
    """The times at which packets are decoded: those of the frames, so many frames earlier.

    Every part begins anew, so what its own encoder says would overlap with the part before where
    frames do not last equally long.
    """
    step = times[1] - times[0] if len(times) > 1 else 1
    yield from (times[0] - step * early for early in range(held, 0, -1))
    yield from times[: len(times) - held]
