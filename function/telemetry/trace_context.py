"""The span of a distributed trace to which work belongs (W3C Trace Context)."""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Self

_PARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
)
_STATE = re.compile(r"[ -~]{0,512}")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A span of a trace, as it is passed on to others.

    Attributes:
        id: of the trace, 32 hexadecimal digits.
        span: 16 hexadecimal digits.
        flags: two hexadecimal digits; the lowest bit says that the trace is recorded.
        state: what makers of tracing systems have added.
    """

    id: str
    span: str
    flags: str
    state: str = ""

    @classmethod
    def parse(cls, parent: object, state: object = "") -> Self | None:
        """Read a `traceparent` and a `tracestate`; None where there is no good one.

        A state that cannot be passed on, as it is too long or not printable, is dropped.
        """
        if not (match := _PARENT.match(parent) if isinstance(parent, str) else None):
            return None
        good = isinstance(state, str) and _STATE.fullmatch(state)
        return cls(match[1], match[2], match[3], good[0] if good else "")

    @property
    def parent(self) -> str:
        """The value of `traceparent` for what follows from it."""
        return f"00-{self.id}-{self.span}-{self.flags}"

    @property
    def headers(self) -> dict[str, str]:
        """To pass it on, as headers or as attributes of an event."""
        return {"traceparent": self.parent} | ({"tracestate": self.state} if self.state else {})

    def child(self) -> Self:
        """A span of its own in the same trace."""
        return replace(self, span=secrets.token_hex(8))


current: ContextVar[TraceContext | None] = ContextVar("trace_context", default=None)
"""What the running task works for; its trace is part of every line that the task logs."""


def join(context: TraceContext | None) -> TraceContext | None:
    """The span for work that came with one: the running task's own where both are of one trace."""
    here = current.get()
    return here if context is None or (here and here.id == context.id) else context
