"""A timeline in the Trace Event Format, which chrome://tracing and Perfetto open.

The format is described in Google's document "Trace Event Format"; complete events ("X") are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warmup.timeline import TimelineSpan


def trace_events(spans: Sequence[TimelineSpan], process: int) -> dict[str, Any]:
    """The document; times are microseconds since the process started.

    Args:
        spans: by start, the longer first, as `Timeline.spans` has them.
        process: its id.
    """
    events = [
        {
            "name": span.name,
            "cat": "start",
            "ph": "X",
            "ts": round(span.start * 1e6),
            "dur": round((span.end - span.start) * 1e6),
            "pid": process,
            "tid": lane,
        }
        for span, lane in zip(spans, lanes(spans), strict=True)
    ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def lanes(spans: Sequence[TimelineSpan]) -> list[int]:
    """A lane, from 0, for each span, so that any two in one lane are apart or one inside the other.

    Viewers draw the spans of one thread that way. Ours come from any thread, and which one it was
    tells nobody anything.
    """
    opened: list[list[float]] = []  # for each lane: the ends of the spans that are open
    chosen = []
    for span in spans:
        for ends in opened:
            while ends and ends[-1] <= span.start:
                ends.pop()
        free = (n for n, ends in enumerate(opened) if not ends or span.end <= ends[-1])
        lane = next(free, len(opened))
        if lane == len(opened):
            opened.append([])
        opened[lane].append(span.end)
        chosen.append(lane)
    return chosen
