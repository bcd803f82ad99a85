"""Seeing a thread that hangs: how long the jobs that are running have been running."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ThreadWatchdog:
    """Knows when each thread began its job.

    Args:
        clock: seconds, never going back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: dict[int, float] = {}  # by thread; each thread touches only its own entry

    @contextmanager
    def job(self) -> Iterator[None]:
        """The body is one job of the calling thread; inside another, which then counts on."""
        thread = threading.get_ident()
        outer = self._began.get(thread)
        self._began[thread] = self._clock()
        try:
            yield
        finally:
            del self._began[thread]
            if outer is not None:
                self._began[thread] = outer

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The body only waits; afterwards the thread's job begins anew."""
        thread = threading.get_ident()
        del self._began[thread]
        try:
            yield
        finally:
            self._began[thread] = self._clock()

    @property
    def longest_s(self) -> float:
        """Seconds for which the oldest job has been running; 0 when none is."""
        began = min(list(self._began.values()), default=None)
        return 0.0 if began is None else self._clock() - began
