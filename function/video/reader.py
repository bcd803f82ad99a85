"""From the file of a video to its frames: what it is, then frame after frame, in order.

Only the demuxer that belongs to the file's first bytes is ever opened: others open what a file
names, playlists for example.
"""

from __future__ import annotations

import bisect
import logging
import math
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import av
import av.error
import numpy as np

from function.images.kinds import FileKind
from function.problems import Problem
from function.video import sound

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

    from function.video.limits import ClipLimits

log = logging.getLogger(__name__)

_DEMUXERS = {
    FileKind.MP4: "mov",
    FileKind.MOV: "mov",
    FileKind.WEBM: "matroska",
    FileKind.MKV: "matroska",
}
_PART_S, _LONGEST_S = 4.0, 12.0
"""A part has about so many seconds, or up to so many where it then ends at a key frame."""
_MISSING_S = 1.5
"""A file that ends so much before it should is cut short."""


@dataclass(frozen=True, slots=True)
class Colour:
    """How to read the numbers of a frame, as ITU-T H.273 counts."""

    primaries: int
    transfer: int
    matrix: int
    full: bool


@dataclass(frozen=True, slots=True)
class VideoFacts:
    """What is known of a video before its frames are decoded.

    Attributes:
        kind: of the file.
        size: (width, height) of the frames as they are coded, even numbers.
        frames: how many there are.
        seconds: of the pictures.
        rate: frames per second, on average.
        time_base: seconds of one tick of `starts`.
        starts: the times at which parts begin, in ticks.
        display: the matrix that turns a frame for display, 9 numbers; None to leave it.
        colour: of the frames.
        aspect: width over height of a pixel; None where it is not said.
        alpha: whether there is transparency, which is not kept.
        sound_left_out: whether there is sound that cannot be kept, beside sound that can.
    """

    kind: FileKind
    size: tuple[int, int]
    frames: int
    seconds: float
    rate: Fraction
    time_base: Fraction
    starts: tuple[int, ...]
    display: tuple[int, ...] | None
    colour: Colour
    aspect: Fraction | None
    alpha: bool
    sound_left_out: bool = False

    @property
    def turned(self) -> tuple[int, bool]:
        """Quarter turns against the clock that set a frame upright; whether it is then mirrored."""
        if self.display is None:
            return 0, False
        a, b, c, d = (self.display[k] / 65536 for k in (0, 1, 3, 4))
        mirrored = a * d - b * c < 0
        return round(-math.atan2(b, -a if mirrored else a) / (math.pi / 2)) % 4, mirrored

    @property
    def upright(self) -> tuple[int, int]:
        """(width, height) as it is shown."""
        width, height = self.size
        return (height, width) if self.turned[0] % 2 else (width, height)


def examine(path: Path, kind: FileKind, limits: ClipLimits) -> VideoFacts:
    """Read a video through, without decoding more than its first frame.

    Args:
        path: the file.
        kind: what it is by its first bytes.
        limits: what it may have. They hold for what is there, not for what headers say.

    Raises:
        Problem: `bad_clip`, `clip_too_long` or `too_many_pixels`.
    """
    limits.check(size=path.stat().st_size)
    with readable(), opened(path, kind) as file:
        stream = pictures(file)
        limits.check(pixels=stream.width * stream.height)
        sound.kept(file)
        left_out = sound.left_out(file)
        times, keys = _times(file, stream, limits)
        rate, aspect = stream.average_rate, stream.sample_aspect_ratio
        alpha = stream.metadata.get("alpha_mode") == "1"
    reader = VideoReader(path, kind, limits)
    first = reader.next()
    reader.close()
    if first is None or not times:
        raise Problem("bad_clip", "The target has no pictures.", image="target")
    tick = Fraction(first.time_base or 0)
    rate = rate or Fraction(len(times), 1)
    last = float((times[-1] - times[0]) * tick + 1 / rate)
    limits.check(seconds=last)
    width, height = first.width & ~1, first.height & ~1
    return VideoFacts(
        kind=kind,
        size=(width, height),
        frames=len(times),
        seconds=last,
        rate=rate,
        time_base=tick,
        starts=tuple(_cuts(times, keys, tick)),
        display=_display(first),
        colour=_colour(first),
        aspect=aspect,
        alpha=alpha,
        sound_left_out=left_out,
    )


def pixels(data: bytes, kind: FileKind) -> int:
    """The pixels of all frames of a video in memory together.

    Raises:
        Problem: `bad_clip`.
    """
    with readable(), av.open(BytesIO(data), "r", format=_DEMUXERS[kind]) as file:
        stream = pictures(file)
        frames = sum(bool(packet.size) for packet in file.demux(stream))
        return stream.width * stream.height * frames


class VideoReader:
    """Decodes a video in order.

    Args:
        path: the file.
        kind: what it is by its first bytes.
        limits: of the pixels of a frame.
    """

    def __init__(self, path: Path, kind: FileKind, limits: ClipLimits) -> None:
        with readable():
            self._file = _open(path, kind)
            self._stream = pictures(self._file)
            self._stream.thread_type = "NONE"  # as many frames at once as there are CPUs, not more
            self._stream.codec_context.options = {"max_pixels": str(limits.pixels)}
        self._limits = limits
        self._size: tuple[int, int] | None = None
        self._last: int | None = None
        self._frames = self._decoded()
        self._ahead: VideoFrame | None = None
        self._lock = threading.RLock()

    def close(self) -> None:
        """Close the file, when no other thread is in another call any more."""
        with self._lock:
            self._frames.close()
            self._file.close()

    def next(self, before: int | None = None) -> VideoFrame | None:
        """The next frame; None when there is none, or only one at this time or later, in ticks.

        Raises:
            Problem: `bad_clip` or `too_many_pixels`.
        """
        frame = self._ahead
        if frame is None:
            with readable(), self._lock:
                frame = next(self._frames, None)
        self._ahead = frame
        if frame is None or (before is not None and _time(frame) >= before):
            return None
        self._ahead = None
        return frame

    def seek(self, start: int) -> None:
        """Go on with the first frame at this time or later, in ticks."""
        with self._lock:
            self._seek(start)

    def _seek(self, start: int) -> None:
        tick = self._stream.time_base or Fraction(1)
        for back in (0, int(10 / tick), None):  # some demuxers land on a key frame that is later
            to = max(start - back, 0) if back is not None else 0
            with readable():
                self._file.seek(to, stream=self._stream, backward=True)
            self._frames.close()
            self._frames, self._ahead, self._last = self._decoded(), None, None
            frame = self.next()
            if frame is None or (_time(frame) > start and to > 0):
                continue
            while frame is not None and _time(frame) < start:
                frame = self.next()
            self._ahead = frame
            return

    def _decoded(self) -> Generator[VideoFrame]:
        for frame in self._file.decode(self._stream):
            self._limits.check(pixels=frame.width * frame.height)
            if frame.is_corrupt or frame.pts is None:
                raise _broken()
            if self._size not in {None, (frame.width, frame.height)}:
                raise Problem(
                    "bad_clip", "The frames of the target change their size.", image="target"
                )
            self._size = frame.width, frame.height
            if self._last is None or frame.pts > self._last:  # a repeated time shows one of them
                self._last = frame.pts
                yield frame


@contextmanager
def opened(path: Path, kind: FileKind) -> Iterator[InputContainer]:
    """A file that is closed in the end."""
    file = _open(path, kind)
    try:
        yield file
    finally:
        file.close()


def pictures(file: InputContainer) -> VideoStream:
    """The stream of a file that is the video, and not a picture of its cover.

    Raises:
        Problem: `bad_clip`, there is none.
    """
    for stream in file.streams.video:
        if not stream.disposition & av.stream.Disposition.attached_pic:
            if stream.codec_context is None:
                raise Problem(
                    "bad_clip", "The target is coded in a way that cannot be read.", image="target"
                )
            return stream
    raise Problem("bad_clip", "The target has no pictures.", image="target")


@contextmanager
def readable() -> Iterator[None]:
    """Turn whatever a file does to its decoder into a problem with the file."""
    try:
        yield
    except (av.error.FFmpegError, UnicodeDecodeError, MemoryError) as error:
        log.debug("the clip cannot be decoded", exc_info=True)
        raise _broken() from error


def _open(path: Path, kind: FileKind) -> InputContainer:
    # whatever file names look like, this one is a file
    return av.open(f"file:{path.resolve()}", "r", format=_DEMUXERS[kind], metadata_errors="replace")


def _broken(*, cut_short: bool = False) -> Problem:
    how = "is cut short: send the whole file" if cut_short else "is damaged, or cannot be decoded"
    return Problem("bad_clip", f"The target {how}.", image="target", cut_short=cut_short)


def _times(
    file: InputContainer, stream: VideoStream, limits: ClipLimits
) -> tuple[list[int], list[int]]:
    """The times of all frames that are shown, and of those that need no other, both rising."""
    times, keys, packets, end = [], [], 0, 0.0
    for packet in file.demux():
        if packet.pts is None or not packet.size:
            continue
        begin = float(packet.pts * packet.time_base)
        end = max(end, begin + float((packet.duration or 0) * packet.time_base))
        if packet.stream_index != stream.index:
            continue
        packets += 1
        if packet.is_corrupt:
            raise _broken(cut_short=True)
        if packet.is_discard:
            continue
        times.append(packet.pts)
        if packet.is_keyframe:
            keys.append(packet.pts)
        limits.check(frames=len(times), seconds=begin)
    stated = (file.duration or 0) / av.time_base
    # The index of an MP4 or QuickTime file has what its edit list shows, and what that needs; the
    # number of frames has those that were trimmed away as well.
    listed = len(stream.index_entries) if file.format.name.startswith("mov") else stream.frames
    if packets < listed or end + (file.start_time or 0) / av.time_base < stated - _MISSING_S:
        raise _broken(cut_short=True)
    return sorted(times), sorted(keys)


def _cuts(times: list[int], keys: list[int], tick: Fraction) -> Iterator[int]:
    """The times at which parts begin, the first frame's among them."""
    usual, longest = int(_PART_S / tick), int(_LONGEST_S / tick)
    at = times[0]
    while True:
        yield at
        key = bisect.bisect_left(keys, at + usual)
        following = keys[key] if key < len(keys) and keys[key] <= at + longest else None
        if following is None:
            place = bisect.bisect_left(times, at + usual)
            if place >= len(times):
                return
            following = times[place]
        at = following


def _display(frame: VideoFrame) -> tuple[int, ...] | None:
    side = cast("Any", frame.side_data).get("DISPLAYMATRIX")
    return None if side is None else tuple(np.frombuffer(bytes(side)[:36], np.int32).tolist())


def _colour(frame: VideoFrame) -> Colour:
    """As the frame says; else, as players take it to be by its size."""
    usual = 1 if frame.height >= 720 else 6  # BT.709, or SMPTE 170M
    full = frame.color_range == 2 or frame.format.name.startswith("yuvj")
    said = frame.color_primaries, frame.color_trc, frame.colorspace
    return Colour(said[0], said[1], said[2] if said[2] not in {0, 2} else usual, full)


def _time(frame: VideoFrame) -> int:
    return frame.pts or 0
