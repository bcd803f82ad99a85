"""What demand to expect: as at this time in recent weeks, times what is going on now.

The usual demand of a moment is the median of the same time of the week, by the clock, over the
weeks before, each with the slots around it; a median, so that an outage or a flash crowd of one
week does not come again. The trend is how much more or less than usual there was in the last hour.
The band is how wrong forecasts of the last week were, each made from what was known before. Where
fewer than two earlier weeks are known, or less than a day of such errors, there is no forecast, and
the schedule counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from zoneinfo import ZoneInfo

    from keepalive.prometheus import Point

STEP = timedelta(minutes=5)
WEEKS = 4
"""How many weeks the usual demand is taken from."""
HISTORY_WEEKS = WEEKS + 1
"""How many a forecast looks at: its band is from last week's, which had theirs."""

_STEP_S = round(STEP.total_seconds())
_WEEK = timedelta(days=7)
_DAY_SLOTS = 24 * 3600 // _STEP_S
_WEEK_SLOTS = 7 * _DAY_SLOTS
_HOUR_SLOTS = 3600 // _STEP_S
_LEAST_WEEKS = 2
_LEAST_ERRORS = _DAY_SLOTS
_MOST_TREND = 4.0
_HALF_TREND_SLOTS = 3 * _HOUR_SLOTS
"""After that long, half of the trend (on a logarithmic scale) is gone."""
_BAND = (0.05, 0.95)
_SMALL = 0.25
"""Requests at once, added to both sides of fractions, so that a quiet night is no division by 0."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What to expect at a moment, in requests at once.

    Attributes:
        at: the moment.
        expected: the forecast.
        low: 5 % of the last week's demands were further below their forecasts, in proportion.
        high: 5 % were further above.
        trend: how much of the usual demand there is now.
        weeks: how many earlier weeks it is taken from.
    """

    at: datetime
    expected: float
    low: float
    high: float
    trend: float
    weeks: int


class Forecaster:
    """Forecasts from one history.

    Args:
        points: demand in the past, in requests at once, each of the time before it; several that
            end within one step are averaged.
        timezone: of the people who make the demand.
        lead: how far ahead the errors of the band are measured.
        leave_out: when days were unlike their weekdays, each from and to.

    Attributes:
        values: demand by the number of the step of time.
        lead: how far ahead a forecast is, in whole steps.
    """

    def __init__(
        self,
        points: Iterable[Point],
        timezone: ZoneInfo,
        lead: timedelta,
        leave_out: Iterable[tuple[datetime, datetime]] = (),
    ) -> None:
        self._timezone = timezone
        self._lead = max(1, math.ceil(lead / STEP))
        self.lead = self._lead * STEP
        spans = tuple(leave_out)
        sums: dict[int, tuple[float, int]] = {}
        for point in points:
            if not any(begins <= point.at < ends for begins, ends in spans):
                at = math.ceil(point.at.timestamp() / _STEP_S)
                total, count = sums.get(at, (0.0, 0))
                sums[at] = (total + point.value, count + 1)
        self.values = {at: total / count for at, (total, count) in sums.items()}
        self._usual: dict[int, tuple[float, int] | None] = {}
        self._errors: dict[int, float | None] = {}

    def forecast(self, now: datetime, ahead: timedelta | None = None) -> Forecast | None:
        """Forecast from what was known at a moment.

        Args:
            now: the moment; what is younger is not looked at.
            ahead: how far ahead; None for the lead time.

        Returns:
            None if the data are too thin.
        """
        begin = slot(now)
        target = begin + (self._lead if ahead is None else max(1, math.ceil(ahead / STEP)))
        expected, usual = self._expected(target, begin), self._usually(target)
        band = self._band(begin)
        if expected is None or usual is None or band is None:
            return None
        scale = expected + _SMALL
        return Forecast(
            at=moment(target),
            expected=expected,
            low=max(0.0, expected + band[0] * scale),
            high=max(expected, expected + band[1] * scale),
            trend=self._trend(begin),
            weeks=usual[1],
        )

    def last_week(self, at: datetime) -> float | None:
        """The demand one week before a moment, by the clock."""
        return self.values.get(self._earlier(slot(at), 1))

    def _expected(self, target: int, now: int) -> float | None:
        if (usual := self._usually(target)) is None:
            return None
        fading = 0.5 ** (max(0, target - now - self._lead) / _HALF_TREND_SLOTS)
        return float(usual[0] * self._trend(now) ** fading)

    def _usually(self, at: int) -> tuple[float, int] | None:
        """The usual demand, and how many weeks tell it."""
        if at not in self._usual:
            weeks = []
            for ago in range(1, WEEKS + 1):
                same = self._earlier(at, ago)
                around = [self.values[s] for s in (same - 1, same, same + 1) if s in self.values]
                if around:
                    weeks.append(sum(around) / len(around))
            enough = len(weeks) >= _LEAST_WEEKS
            self._usual[at] = (median(weeks), len(weeks)) if enough else None
        return self._usual[at]

    def _trend(self, now: int) -> float:
        """Of the last hour's usual demand, how much there was; 1 when little is known."""
        seen = there = 0.0
        count = 0
        for at in range(now - _HOUR_SLOTS + 1, now + 1):
            usual = self._usually(at)
            if usual is not None and at in self.values:
                seen, there, count = seen + self.values[at], there + usual[0], count + 1
        if count < _HOUR_SLOTS // 2:
            return 1.0
        trend = (seen + _SMALL * count) / (there + _SMALL * count)
        return min(_MOST_TREND, max(1 / _MOST_TREND, trend))

    def _error(self, at: int) -> float | None:
        """How wrong the forecast for a moment was, in proportion."""
        if at not in self._errors:
            expected = self._expected(at, at - self._lead) if at in self.values else None
            self._errors[at] = (
                None if expected is None else (self.values[at] - expected) / (expected + _SMALL)
            )
        return self._errors[at]

    def _band(self, now: int) -> tuple[float, float] | None:
        errors = sorted(
            error
            for at in range(now - _WEEK_SLOTS + 1, now + 1)
            if (error := self._error(at)) is not None
        )
        if len(errors) < _LEAST_ERRORS:
            return None
        return _quantile(errors, _BAND[0]), _quantile(errors, _BAND[1])

    def _earlier(self, at: int, weeks: int) -> int:
        """The slot that many weeks before, by the clock."""
        local = moment(at).astimezone(self._timezone)
        return slot(local - weeks * _WEEK)  # within one zone, Python reckons by the clock


def slot(at: datetime) -> int:
    """The number of the step of time that a moment is in."""
    return int(at.timestamp() // _STEP_S)


def moment(number: int) -> datetime:
    """When a step of time begins."""
    return datetime.fromtimestamp(number * _STEP_S, UTC)


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
