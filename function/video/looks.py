"""Frames from all over a clip, for who does not look at each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.video.editable_frame import EditableFrame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.images.picture import Picture
    from function.video.facts import VideoFacts
    from function.video.reader import VideoReader

LOOKS = 8
"""How many frames are enough to see what a clip shows, or carries."""


def moments(facts: VideoFacts, count: int = LOOKS) -> list[int]:
    """When to look, in ticks: where parts begin, as these are quickly found, if there are enough.

    Args:
        facts: of the clip.
        count: how many moments at most.
    """
    starts = facts.starts
    if len(starts) < count:
        ticks = facts.seconds / float(facts.time_base)
        return [starts[0] + int(ticks * place / count) for place in range(count)]
    return [starts[round(place * (len(starts) - 1) / (count - 1))] for place in range(count)]


def looks(reader: VideoReader, facts: VideoFacts) -> Iterator[Picture]:
    """Frames from all over a clip, each once; the reader is somewhere afterwards.

    Raises:
        Problem: `bad_clip`, a frame cannot be decoded.
    """
    last: int | None = None
    for moment in moments(facts):
        reader.seek(moment)
        frame = reader.next()
        if frame is not None and frame.pts != last:
            last = frame.pts
            yield EditableFrame(frame, facts).picture
