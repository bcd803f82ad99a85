"""Where the time of one request went."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StageTiming:
    """One piece of work: what, when it began and how long it took (milliseconds of the request)."""

    stage: str
    start_ms: float
    ms: float


@dataclass(slots=True)
class Timings:
    """The spans of one request; spans may be added from several threads at once."""

    began: float = field(default_factory=time.perf_counter)
    spans: list[StageTiming] = field(default_factory=list)

    def span(self, stage: str) -> _Running:
        """Measure the body of `with` as one span of `stage`."""
        return _Running(self, stage)

    def of(self, *stages: str) -> float:
        """Milliseconds in these stages."""
        return sum(span.ms for span in self.spans if span.stage in stages)

    def totals(self) -> dict[str, float]:
        """Milliseconds per stage, in the order in which the stages first ended."""
        totals: dict[str, float] = {}
        for span in self.spans:
            totals[span.stage] = totals.get(span.stage, 0.0) + span.ms
        return totals


class _Running:
    """A span that has not ended."""

    __slots__ = ("_stage", "_start", "_trace")

    def __init__(self, trace: Timings, stage: str) -> None:
        self._trace, self._stage = trace, stage

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        end, began = time.perf_counter(), self._trace.began
        span = StageTiming(self._stage, (self._start - began) * 1e3, (end - self._start) * 1e3)
        self._trace.spans.append(span)
