"""Where the time of one request went."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Span:
    """One piece of work: what, when it began and how long it took (milliseconds of the request)."""

    stage: str
    start_ms: float
    ms: float


@dataclass(slots=True)
class Trace:
    """The spans of one request; spans may be added from several threads at once."""

    began: float = field(default_factory=time.perf_counter)
    spans: list[Span] = field(default_factory=list)

    @contextmanager
    def span(self, stage: str) -> Iterator[None]:
        """Measure the body as one span of `stage`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            end = time.perf_counter()
            self.spans.append(Span(stage, (start - self.began) * 1e3, (end - start) * 1e3))

    def totals(self) -> dict[str, float]:
        """Milliseconds per stage, in the order in which the stages first ended."""
        totals: dict[str, float] = {}
        for span in self.spans:
            totals[span.stage] = totals.get(span.stage, 0.0) + span.ms
        return totals
