"""A circuit breaker: a service that fails again and again is left alone for a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_FAILURES = 3
_LEAST_S, _MOST_S = 0.5, 15.0


class Breaker:
    """Says whether a service should be tried.

    After three failures in a row it says no for half a second, then lets one attempt through, and
    doubles the pause, up to 15 seconds, for as long as these fail too. Attempts that are under way
    at the same time and fail have one cause, and count as one failure.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._pause_s = _LEAST_S
        self._closed_until = 0.0
        self._round = 0

    @property
    def open(self) -> bool:
        """Whether the service counts as down."""
        return self._failures >= _FAILURES

    def attempt(self) -> int | None:
        """The number of an attempt, for `failed`, when it is to be made now; None for not now."""
        if not self.open:
            return self._round
        now = self._clock()
        if now < self._closed_until:
            return None
        self._closed_until = now + self._pause_s  # others wait for how this attempt goes
        return self._round

    def succeeded(self) -> None:
        """An attempt went well."""
        self._failures, self._pause_s = 0, _LEAST_S

    def failed(self, attempt: int) -> None:
        """An attempt did not; nothing more is learned from those that began before it failed."""
        if attempt != self._round:
            return
        self._round += 1
        if self.open:
            self._pause_s = min(2 * self._pause_s, _MOST_S)
        self._failures += 1
        if self.open:
            self._closed_until = self._clock() + self._pause_s
