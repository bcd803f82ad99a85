"""How long the stages of one request took."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StageTiming:
    """One run of a stage: when it began, since the request did, and how long it took, in ms."""

    stage: str
    start_ms: float
    ms: float


@dataclass(slots=True)
class Timings:
    """The stage timings of one request; several threads may add to them at once.

    Attributes:
        began: when the request did, by `time.perf_counter`.
        spans: in the order in which they ended.
    """

    began: float = field(default_factory=time.perf_counter)
    spans: list[StageTiming] = field(default_factory=list)

    def span(self, stage: str) -> _Running:
        """Measure the body of `with` as one span of `stage`."""
        return _Running(self, stage)

    def of(self, *stages: str) -> float:
        """Milliseconds in these stages together."""
        return sum(span.ms for span in self.spans if span.stage in stages)

    def totals(self) -> dict[str, float]:
        """Milliseconds per stage, in the order in which the stages first ended."""
        totals: dict[str, float] = {}
        for span in self.spans:
            totals[span.stage] = totals.get(span.stage, 0.0) + span.ms
        return totals


class _Running:
    """A stage that has not ended."""

    __slots__ = ("_stage", "_start", "_timings")

    def __init__(self, timings: Timings, stage: str) -> None:
        self._timings, self._stage = timings, stage

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        end, began = time.perf_counter(), self._timings.began
        span = StageTiming(self._stage, (self._start - began) * 1e3, (end - self._start) * 1e3)
        self._timings.spans.append(span)
