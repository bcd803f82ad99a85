"""The demand of the past, as Prometheus has it."""

from __future__ import annotations

from bisect import bisect_left
from datetime import timedelta
from typing import TYPE_CHECKING

from keepalive.forecasting.forecast import STEP

if TYPE_CHECKING:
    from datetime import datetime

    from keepalive.prometheus import Point, Prometheus

_UNSETTLED = timedelta(minutes=30)
"""The values of that time may still change: scrapes and remote writes come late."""
_GAP = timedelta(minutes=10)
"""After that long without a read, all is read again."""


def query(matchers: str, window: str = "5m") -> str:
    """The PromQL for requests at once.

    It is the mean over a window (Little's law), from a counter, so that nothing between two scrapes
    is missed.

    Args:
        matchers: of labels, in PromQL, e.g. `namespace="ember"`; "" for all.
        window: over which it is the mean.
    """
    more = f", {matchers}" if matchers else ""
    return f'sum(rate(ember_request_seconds_sum{{route="/v1/swap"{more}}}[{window}]))'


class DemandHistory:
    """Requests at once in the last weeks, in steps as forecasts have them.

    The first read asks for all weeks. A later one asks for what has come since, and again for the
    last half hour: read at 12:01 and at 12:02, the first asks for five weeks until 12:00, the
    second for 11:30 to 12:00, which are seven points in place of ten thousand.

    Args:
        prometheus: whom to ask.
        matchers: of the replicas' metrics, as for `query`.
        weeks: how long it is; a little is added, so that changed clocks cut nothing off.
    """

    def __init__(self, prometheus: Prometheus, matchers: str, weeks: int) -> None:
        self._prometheus = prometheus
        self._query = query(matchers)
        self._length = timedelta(days=7 * weeks, hours=2)
        self._points: tuple[Point, ...] = ()
        self._read: datetime | None = None

    def read(self, now: datetime) -> tuple[Point, ...]:
        """The history until now, as if all of it had been asked for.

        Raises:
            Failure: Prometheus does not answer; what was known before stays known.
        """
        end = now - timedelta(seconds=now.timestamp() % STEP.total_seconds())
        begin = first = end - self._length
        if self._read is not None and timedelta(0) <= now - self._read <= _GAP:
            first = max(begin, end - _UNSETTLED)
        fresh = self._prometheus.points(self._query, first, end, STEP)
        known, at = self._points, _moment
        kept = known[bisect_left(known, begin, key=at) : bisect_left(known, first, key=at)]
        self._points, self._read = (*kept, *fresh), now
        return self._points


def _moment(point: Point) -> datetime:
    return point.at
