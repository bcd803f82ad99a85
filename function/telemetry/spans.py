"""Spans of distributed traces, as OpenTelemetry has them.

They are recorded once `record_with` was called; without, a trace is continued all the same.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, Self

from function.telemetry import trace_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.telemetry.timings import Timings
    from function.telemetry.trace_context import TraceContext


class SpanKind(StrEnum):
    """Which side of a conversation a span is, named as OpenTelemetry does."""

    SERVER = "SERVER"
    CONSUMER = "CONSUMER"
    INTERNAL = "INTERNAL"


class Recording(Protocol):
    """A span that is recorded."""

    context: TraceContext | None

    def end(self, facts: Mapping[str, Any], stages: Timings | None, *, failed: bool) -> None:
        """Write down what became of it; the stages are spans within it."""


class Recorder(Protocol):
    """Records spans."""

    def begin(self, name: str, kind: SpanKind, parent: TraceContext | None) -> Recording:
        """Begin with one."""


_recorder: Recorder | None = None


def record_with(recorder: Recorder | None) -> None:
    """Record all that begins from now on; with None, nothing."""
    global _recorder  # noqa: PLW0603 (as with logs, there is one for a process)
    _recorder = recorder


class Span:
    """One operation; what the running task logs and begins from here on is part of it.

    As a context manager, it ends with the body, and an exception counts as a failure.

    Args:
        name: the same for all of its kind.
        kind: which side it is.
        parent: what it is part of; None for the beginning of a trace.
        recorded: whether it is worth recording.

    Attributes:
        context: what follows from it belongs to; None for no trace.
        facts: what is to be known about it, by names of OpenTelemetry's conventions.
        stages: where its time went.
    """

    __slots__ = ("_before", "_recording", "context", "facts", "stages")

    def __init__(
        self,
        name: str,
        kind: SpanKind = SpanKind.INTERNAL,
        parent: TraceContext | None = None,
        *,
        recorded: bool = True,
    ) -> None:
        self.facts: dict[str, Any] = {}
        self.stages: Timings | None = None
        self._recording = _recorder.begin(name, kind, parent) if _recorder and recorded else None
        self.context = self._recording.context if self._recording else parent and parent.child()
        self._before = trace_context.current.set(self.context)

    def end(self, *, failed: bool) -> None:
        """End it; `failed` means that whoever runs the replica should look into it."""
        if self._recording:
            self._recording.end(self.facts, self.stages, failed=failed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error:
            self.facts["error.type"] = getattr(error, "code", type(error).__name__)
        self.end(failed=error is not None)
        trace_context.current.reset(self._before)
