"""What is known of a video before its frames are decoded."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import av
import numpy as np

from function.problems import Problem
from function.video import sound
from function.video.reader import DEMUXERS, VideoReader, broken, opened, pictures, readable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

    from function.images.kinds import FileKind
    from function.video.limits import ClipLimits

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
    """The facts of one video.

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
        sound_left_out: whether there is sound that cannot be kept, while other sound can.
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
    with readable(), av.open(BytesIO(data), "r", format=DEMUXERS[kind]) as file:
        stream = pictures(file)
        frames = sum(bool(packet.size) for packet in file.demux(stream))
        return stream.width * stream.height * frames


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
            raise broken(cut_short=True)
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
        raise broken(cut_short=True)
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
