"""Averages over the last seconds, with one bucket for each.

Seconds without a report count as nothing, but only back to the first report; after a whole window
without one, the next report starts afresh. Times are whole seconds and never go back.
"""

from __future__ import annotations

import math

_LONG_AGO = -(10**9)
_WEIGHED = 1e-4
"""What the seconds before the window would weigh together, in an exponential average."""
_LIGHTEST = 0.2
"""The least that the newest second weighs in one."""


class TimedBuckets:
    """The plain average over so many seconds."""

    def __init__(self, seconds: int) -> None:
        self._buckets = [0.0] * seconds
        self._total = 0.0
        self._first = self._last = _LONG_AGO

    def record(self, now: int, value: float) -> None:
        """Add a report to this second."""
        buckets, length = self._buckets, len(self._buckets)
        if now - self._last >= length:
            self._buckets = buckets = [0.0] * length
            self._total = 0.0
            self._first = now
        else:
            for second in range(self._last + 1, now + 1):
                self._total -= buckets[second % length]
                buckets[second % length] = 0.0
        self._last = now
        buckets[now % length] += value
        self._total += value

    def average(self, now: int) -> float:
        """The average of the window that ends with this second, rounded down to millionths."""
        length = len(self._buckets)
        age = now - self._last
        if age >= length:
            return 0.0
        total = self._total
        for second in range(self._last + 1, now + 1):
            total -= self._buckets[second % length]
        return _rounded(total / min(self._last - self._first + 1, length - age))

    def empty(self, now: int) -> bool:
        """Whether there was no report for longer than the window."""
        return now - self._last > len(self._buckets)


class WeightedBuckets(TimedBuckets):
    """The average in which newer seconds weigh more.

    The newest second weighs 1 − 0.0001^(1 ÷ length), at least a fifth, and each older one less by
    that part. Unlike the plain average it starts low: what was before the first report counts as 0.
    """

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self._weight = max(1 - _WEIGHED ** (1 / seconds), _LIGHTEST)

    def average(self, now: int) -> float:
        """The weighted average of the window that ends with this second."""
        length = len(self._buckets)
        age = now - self._last
        if age >= length:
            return 0.0
        weight = self._weight * (1 - self._weight) ** age
        total = 0.0
        for back in range(length - age):
            total += self._buckets[(self._last - back) % length] * weight
            weight *= 1 - self._weight
        return _rounded(total)


def _rounded(value: float) -> float:
    return math.floor(value * 1e6) / 1e6
