"""A timeline as viewers of traces want it."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from warmup.timeline import Timeline, TimelineSpan
from warmup.trace_format import lanes, trace_events

TIMES = st.integers(-20, 100)


def test_times_are_microseconds_since_the_process_started():
    document = trace_events([TimelineSpan("load detect", 0.25, 1.5)], 7)
    (event,) = document["traceEvents"]
    assert (event["ph"], event["name"], event["pid"]) == ("X", "load detect", 7)
    assert (event["ts"], event["dur"]) == (250_000, 1_250_000)


def test_what_is_inside_shares_the_lane_and_what_overlaps_does_not():
    spans = [
        TimelineSpan("outer", 0, 10),
        TimelineSpan("one", 1, 5),
        TimelineSpan("other", 3, 7),
        TimelineSpan("next", 10, 12),
    ]
    assert lanes(spans) == [0, 0, 1, 0]


@given(st.lists(st.tuples(TIMES, TIMES), max_size=30))
def test_two_spans_of_a_lane_are_apart_or_one_is_inside_the_other(times):
    line = Timeline()
    for start, end in times:
        line.add("span", min(start, end), max(start, end))
    placed = zip(line.spans, lanes(line.spans), strict=True)
    for (one, lane), (other, another) in combinations(placed, 2):
        if lane == another:
            apart = other.start >= one.end
            inside = one.start <= other.start and other.end <= one.end
            assert apart or inside
