"""How good forecasts would have been: each from what was known then, held against what came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepalive.forecasting.forecast import STEP, moment, slot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from keepalive.forecasting.forecast import Forecast, Forecaster


@dataclass(frozen=True, slots=True)
class BacktestRow:
    """One forecast and what came.

    Attributes:
        forecast: what was expected.
        came: the demand.
        last_week: the demand a week before: what one would expect who only looks there.
        before: the demand when the forecast was made: what one would expect who only looks there.
    """

    forecast: Forecast
    came: float
    last_week: float | None
    before: float | None


@dataclass(frozen=True, slots=True)
class Score:
    """How good a way to expect is; all are shares.

    Attributes:
        error: the mean distance from what came, of the mean of what came.
        bias: the mean of what was expected too much, likewise; negative for too little.
    """

    error: float
    bias: float


@dataclass(frozen=True, slots=True)
class Backtest:
    """What came of it.

    Attributes:
        rows: in the order of time.
        asked: how many forecasts were asked for; the data were too thin for the others.
        forecast: how good the forecasts were.
        last_week: how good it would have been to expect what was a week before.
        before: how good it would have been to expect no change.
        inside: share of demands within the band; 90 % are meant to be.
        covered: share of demands that were not above it; 95 % are meant to be.
    """

    rows: tuple[BacktestRow, ...]
    asked: int
    forecast: Score
    last_week: Score
    before: Score
    inside: float
    covered: float


def backtest(forecaster: Forecaster, begin: datetime, end: datetime) -> Backtest | None:
    """Forecast every step of a span, each its lead time before.

    Returns:
        None if the data are too thin for any forecast.
    """
    rows, asked = [], 0
    at = moment(slot(begin))
    while at <= end:
        came = forecaster.values.get(slot(at))
        if came is not None:
            asked += 1
            now = at - forecaster.lead
            if (forecast := forecaster.forecast(now)) is not None:
                before = forecaster.values.get(slot(now))
                rows.append(BacktestRow(forecast, came, forecaster.last_week(at), before))
        at += STEP
    if not rows:
        return None
    return Backtest(
        rows=tuple(rows),
        asked=asked,
        forecast=_score(rows, lambda row: row.forecast.expected),
        last_week=_score(rows, lambda row: row.last_week),
        before=_score(rows, lambda row: row.before),
        inside=_share(rows, lambda row: row.forecast.low <= row.came <= row.forecast.high),
        covered=_share(rows, lambda row: row.came <= row.forecast.high),
    )


def _score(rows: Sequence[BacktestRow], expected: Callable[[BacktestRow], float | None]) -> Score:
    pairs = [(row.came, value) for row in rows if (value := expected(row)) is not None]
    total = sum(came for came, _ in pairs) or 1.0
    return Score(
        error=sum(abs(came - value) for came, value in pairs) / total,
        bias=sum(value - came for came, value in pairs) / total,
    )


def _share(rows: Sequence[BacktestRow], holds: Callable[[BacktestRow], bool]) -> float:
    return sum(map(holds, rows)) / len(rows)
