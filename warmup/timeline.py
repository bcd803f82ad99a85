"""The named spans of one cold start, from the moment the kernel started the process until ready."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

_STARTTIME = 19  # of the fields of /proc/self/stat behind the name, from 0; see proc_pid_stat(5)


@dataclass(frozen=True, slots=True)
class TimelineSpan:
    """One piece of the start: its name, and seconds since the process started."""

    name: str
    start: float
    end: float


class Timeline:
    """Collects spans from any thread until it is finished; what comes later is no cold start.

    Args:
        began: when the process started, on the clock of `time.perf_counter`.
    """

    def __init__(self, began: float | None = None) -> None:
        self._began = process_start() if began is None else began
        self._spans: list[TimelineSpan] = []
        self._lock = threading.Lock()
        self._finished = False

    def now(self) -> float:
        """Seconds since the process started."""
        return time.perf_counter() - self._began

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Measure the body as one span, also when it fails."""
        start = self.now()
        try:
            yield
        finally:
            self.add(name, start, self.now())

    def add(self, name: str, start: float, end: float) -> None:
        """Add a span that was measured elsewhere, in seconds since the process started."""
        with self._lock:
            if not self._finished:
                self._spans.append(TimelineSpan(name, start, end))

    def pod(self, created: datetime | None, scheduled: datetime | None) -> None:
        """Add what the platform did before the process started, as spans before 0.

        Args:
            created: when the pod was made, if that is known.
            scheduled: when it got its node.
        """
        process = time.time() - self.now()
        moments = [("pod scheduling", created), ("pod start", scheduled)]
        known = [(name, at.timestamp() - process) for name, at in moments if at]
        ends = [*(start for _, start in known[1:]), 0.0][: len(known)]
        for (name, start), end in zip(known, ends, strict=True):
            if start <= end:  # clocks of two machines may disagree
                self.add(name, start, end)

    def finish(self) -> None:
        """The start is over: add nothing any more."""
        with self._lock:
            self._finished = True

    @property
    def finished(self) -> bool:
        """Whether the start is over."""
        return self._finished

    @property
    def spans(self) -> tuple[TimelineSpan, ...]:
        """What is known so far, by start."""
        with self._lock:
            return tuple(sorted(self._spans, key=lambda span: (span.start, -span.end)))

    def facts(self) -> list[dict[str, Any]]:
        """The spans as JSON knows them."""
        return [
            {"name": span.name, "start_s": round(span.start, 4), "end_s": round(span.end, 4)}
            for span in self.spans
        ]


def process_start() -> float:
    """When the kernel started this process, on the clock of `time.perf_counter`.

    What happened before this module is imported (the interpreter itself) counts as well. Where the
    kernel does not tell, it is now.
    """
    now = time.perf_counter()
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[_STARTTIME]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return now - max(age, 0.0)
