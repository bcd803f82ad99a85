"""From the file of a video to its frames, in order.

Only the demuxer that belongs to the file's first bytes is ever opened: others open what a file
names, playlists for example.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING

import av
import av.error

from function.images.kinds import FileKind
from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

    from function.video.limits import ClipLimits

log = logging.getLogger(__name__)

DEMUXERS = {
    FileKind.MP4: "mov",
    FileKind.MOV: "mov",
    FileKind.WEBM: "matroska",
    FileKind.MKV: "matroska",
}


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
                raise broken()
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
        raise broken() from error


def _open(path: Path, kind: FileKind) -> InputContainer:
    # whatever file names look like, this one is a file
    return av.open(f"file:{path.resolve()}", "r", format=DEMUXERS[kind], metadata_errors="replace")


def broken(*, cut_short: bool = False) -> Problem:
    """The problem of a file that no decoder can read."""
    how = "is cut short: send the whole file" if cut_short else "is damaged, or cannot be decoded"
    return Problem("bad_clip", f"The target {how}.", image="target", cut_short=cut_short)


def _time(frame: VideoFrame) -> int:
    return frame.pts or 0
