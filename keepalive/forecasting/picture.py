"""The picture of a backtest; it alone needs matplotlib."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from zoneinfo import ZoneInfo

    from keepalive.forecasting.backtest import Backtest, BacktestRow

_HOUR = 12


def draw(result: Backtest, path: Path, title: str, timezone: ZoneInfo) -> None:
    """Draw it: demand and forecast with its band, and below how wrong each way to expect was.

    Args:
        result: with rows.
        path: of the picture; its ending says the format.
        title: of the picture.
        timezone: in which days begin.

    Raises:
        ModuleNotFoundError: matplotlib is not there.
        OSError: the picture cannot be written.
    """
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure

    rows = result.rows
    times = [row.forecast.at for row in rows]
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
    above.fill_between(
        times,
        [row.forecast.low for row in rows],
        [row.forecast.high for row in rows],
        color="#f4b183",
        alpha=0.5,
        linewidth=0,
        label=f"band, {result.inside:.0%} inside",
    )
    above.plot(times, [row.came for row in rows], color="#333333", lw=0.9, label="what came")
    above.plot(
        times,
        [row.forecast.expected for row in rows],
        color="#c0392b",
        lw=1.2,
        label=f"forecast, {result.forecast.error:.1%} off",
    )
    above.set_ylabel("requests at once")
    above.set_ylim(0, 1.15 * max(max(row.came, row.forecast.high) for row in rows))
    above.set_title(title, loc="left")
    above.legend(loc="upper left", ncols=3, frameon=False)
    for name, score, pick, colour in (
        ("last week", result.last_week, lambda row: row.last_week, "#7f8c8d"),
        ("no change", result.before, lambda row: row.before, "#2980b9"),
        ("forecast", result.forecast, lambda row: row.forecast.expected, "#c0392b"),
    ):
        wrong = _smooth([_wrong(row, pick(row)) for row in rows])
        below.plot(times, wrong, color=colour, lw=1.2, label=f"{name}, {score.error:.1%}")
    below.set_ylabel("off, mean of 1 h")
    below.set_ylim(0, 1.2 * below.get_ylim()[1])
    below.legend(loc="upper left", ncols=3, frameon=False)
    days = AutoDateLocator(tz=timezone)
    below.xaxis.set_major_locator(days)
    below.xaxis.set_major_formatter(ConciseDateFormatter(days, tz=timezone))
    for each in (above, below):
        each.spines[["top", "right"]].set_visible(False)
        each.margins(x=0)
    figure.savefig(path, dpi=90)


def _wrong(row: BacktestRow, expected: float | None) -> float:
    return math.nan if expected is None else abs(row.came - expected)


def _smooth(values: Sequence[float]) -> list[float]:
    """The mean of each hour that ends with the value; what is not a number is left out."""
    found = []
    for end in range(1, len(values) + 1):
        last = [value for value in values[max(0, end - _HOUR) : end] if not math.isnan(value)]
        found.append(sum(last) / len(last) if last else math.nan)
    return found
