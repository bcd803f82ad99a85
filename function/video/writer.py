"""From frames to the bytes of a part, and from parts to a file, with the sound as it was."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import av
import av.error
from av.codec.context import Flags
from av.packet import Packet

from function.problems import Problem
from function.video.kinds import Kind
from function.video.plate import FORMAT
from function.video.reader import opened, pictures, readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from av.video.codeccontext import VideoCodecContext
    from av.video.frame import VideoFrame

    from function.video.reader import Facts

log = logging.getLogger(__name__)

_MUXERS = {Kind.MP4: "mp4", Kind.MOV: "mov", Kind.WEBM: "webm", Kind.MKV: "matroska"}
_QUALITY = 90
"""Where the caller names none; as photos have it."""


def codec(kind: Kind) -> str:
    """How videos of a kind are written."""
    return "libvpx-vp9" if kind is Kind.WEBM else "libx264"


def part_facts(data: bytes) -> dict[str, Any]:
    """What a part says about itself, beside its packets."""
    told: dict[str, Any] = json.loads(data[: data.index(b"\n")])
    return told


class Writer:
    """Encodes the frames of one part.

    Args:
        facts: of the video.
        kind: of the file that is made.
        quality: 1 to 100; None for a good one.
    """

    def __init__(self, facts: Facts, kind: Kind, quality: int | None) -> None:
        self._context = av.CodecContext.create(codec(kind), "w")
        _set_up(self._context, facts, kind, quality)
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
        told = [
            (packet.pts, self._durations[packet.pts or 0], packet.is_keyframe, packet.size)
            for packet in self._packets
        ]
        head = json.dumps(facts | {"packets": told}).encode()
        return b"\n".join((head, b"".join(bytes(packet) for packet in self._packets)))


class Joiner:
    """Puts parts and the sound of the original into a file. It encodes nothing.

    Args:
        path: the file to write.
        kind: what it becomes.
        source: the original.
        facts: of it.
        quality: with which the parts were written.
        times: of all frames, in ticks, in any order.

    Raises:
        Problem: `bad_value`, the sound does not fit into a file of that kind.
    """

    def __init__(
        self,
        path: Path,
        kind: Kind,
        source: Path,
        facts: Facts,
        quality: int | None,
        times: Iterable[int],
    ) -> None:
        self._facts = facts
        self._decoding = iter(_decoding_times(sorted(times), _reordered(facts, kind, quality)))
        options = {"movflags": "+faststart"} if kind in {Kind.MP4, Kind.MOV} else {}
        self._file = av.open(f"file:{path}", "w", format=_MUXERS[kind], container_options=options)
        self._stream = self._file.add_stream(codec(kind), rate=facts.rate)
        _set_up(self._stream.codec_context, facts, kind, quality)
        if facts.display:
            self._stream.set_display_matrix(facts.display)
        self._source = opened(source, facts.kind)
        self._others = self._rest(kind)
        self._next_other = next(self._others, None)

    def add(self, part: bytes) -> None:
        """Add the next part."""
        at = part.index(b"\n") + 1
        for time, duration, key, size in part_facts(part)["packets"]:
            packet: Packet[Any] = Packet(part[at : at + size])
            at += size
            packet.stream = self._stream
            packet.time_base = self._facts.time_base
            packet.pts, packet.dts, packet.duration = time, next(self._decoding), duration
            packet.is_keyframe = key
            self._add_others(float(packet.dts * self._facts.time_base))
            self._file.mux(packet)

    def close(self) -> None:
        """Write what is left of the sound, and the end of the file."""
        self._add_others(float("inf"))
        self._file.close()

    def _add_others(self, until: float) -> None:
        """Write what comes before this time, in seconds."""
        while (packet := self._next_other) is not None:
            if packet.dts is not None and float(packet.dts * packet.time_base) > until:
                return
            self._file.mux(packet)
            with readable():
                self._next_other = next(self._others, None)

    def _rest(self, kind: Kind) -> Iterator[Packet[Any]]:
        """The packets of sound and subtitles, for the streams that they now belong to."""
        with readable(), self._source as file:
            pictures(file)
            streams = {}
            for stream in (*file.streams.audio, *file.streams.subtitles):
                try:
                    own = self._file.add_stream_from_template(stream)
                except ValueError:
                    if stream.type == "subtitle":
                        continue
                    raise _no_room(stream.codec_context.name, kind) from None
                if language := stream.metadata.get("language"):
                    own.metadata["language"] = language
                streams[stream.index] = own
            yield from _moved(file, streams)


def _moved(file: Any, streams: Mapping[int, Any]) -> Iterator[Packet[Any]]:
    if not streams:
        return
    for packet in file.demux([file.streams[index] for index in streams]):
        if packet.dts is not None:
            packet.stream = streams[packet.stream_index]
            yield packet


def _no_room(name: str, kind: Kind) -> Problem:
    return Problem(
        "bad_value",
        f"Sound of the kind {name} does not fit into {kind.suffix}; Ember keeps sound as it is.",
        field="format",
        hint="Keep the kind of the target, or write .mkv.",
    )


def _set_up(context: VideoCodecContext, facts: Facts, kind: Kind, quality: int | None) -> None:
    """Make an encoder the one of this video: each of them writes the same head."""
    context.width, context.height = facts.size
    context.pix_fmt = FORMAT
    context.time_base, context.framerate = facts.time_base, facts.rate
    context.color_primaries, context.color_trc = facts.colour.primaries, facts.colour.transfer
    context.colorspace, context.color_range = facts.colour.matrix, 1 + facts.colour.full
    if facts.aspect:
        context.sample_aspect_ratio = facts.aspect
    context.thread_count = 1  # as many frames at once as there are CPUs, not more
    context.flags |= Flags.global_header
    worse = 100 - (quality or _QUALITY)
    if codec(kind) == "libx264":
        context.options = {"preset": "veryfast", "crf": f"{15 + worse * 0.35:.1f}"}
    else:
        context.bit_rate = 0
        context.options = {
            "deadline": "realtime",
            "cpu-used": "6",
            "crf": str(round(20 + worse * 0.42)),
            "lag-in-frames": "0",
        }


def _reordered(facts: Facts, kind: Kind, quality: int | None) -> int:
    """How many frames an encoder of this video holds back to put them into another order."""
    context = av.CodecContext.create(codec(kind), "w")
    _set_up(context, facts, kind, quality)
    context.open()
    return int(context.has_b_frames and context.reorder_depth)


def _decoding_times(times: Sequence[int], held: int) -> Iterator[int]:
    """The times at which packets are decoded: those of the frames, so many frames earlier.

    Every part begins anew, so what its own encoder says would overlap with the part before where
    frames do not last equally long.
    """
    step = times[1] - times[0] if len(times) > 1 else 1
    yield from (times[0] - step * early for early in range(held, 0, -1))
    yield from times[: len(times) - held]


