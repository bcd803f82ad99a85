"""The W3C's `traceparent`, and which of two places in traces counts."""

from __future__ import annotations

import pytest

from function.telemetry import trace_context
from function.telemetry.trace_context import TraceContext

ID, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{ID}-{SPAN}-01"


def test_it_is_written_as_it_was_read():
    context = TraceContext.parse(PARENT, "a=1,b=2")
    assert (context.id, context.span, context.flags) == (ID, SPAN, "01")
    assert context.headers == {"traceparent": PARENT, "tracestate": "a=1,b=2"}
    assert TraceContext.parse(PARENT).headers == {"traceparent": PARENT}


def test_a_later_version_may_say_more():
    assert TraceContext.parse(f"01-{ID}-{SPAN}-01-what-comes").parent == PARENT


@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        "",
        "x",
        PARENT.upper(),
        PARENT[:-1],
        f"ff-{ID}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{ID}-{'0' * 16}-01",
        f"00-{ID}-{SPAN}-0g",
    ],
)
def test_what_is_none_is_none(bad):
    assert TraceContext.parse(bad) is None


def test_a_child_is_another_span_of_the_same_trace():
    context = TraceContext.parse(PARENT, "a=1")
    child = context.child()
    assert (child.id, child.flags, child.state) == (ID, "01", "a=1")
    assert len(child.span) == 16
    assert len({context.span, child.span, context.child().span}) == 3


def test_of_one_trace_the_nearer_place_counts_and_else_what_came():
    came = TraceContext.parse(PARENT)
    assert trace_context.join(came) is came
    assert trace_context.join(None) is None
    for here, joined in ((came.child(), "here"), (TraceContext("1" * 32, SPAN, "01"), "came")):
        token = trace_context.current.set(here)
        assert trace_context.join(came) is {"here": here, "came": came}[joined]
        assert trace_context.join(None) is here
        trace_context.current.reset(token)
