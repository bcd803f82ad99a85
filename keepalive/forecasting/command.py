"""`ember forecast`: what demand to expect, and how good such forecasts would have been."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from keepalive import options
from keepalive.failure import Exit, Failure, bring
from keepalive.forecasting import backtest as backtests
from keepalive.forecasting.demand import DemandHistory
from keepalive.forecasting.forecast import HISTORY_WEEKS, Forecaster
from keepalive.prometheus import Point, Prometheus
from keepalive.times import zone

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from keepalive.forecasting.backtest import Backtest


@dataclass(frozen=True, slots=True)
class DemandSource:
    """Where the demand of the past comes from, and how it is forecast.

    Attributes:
        prometheus: asked for it; None for a file.
        selector: of the replicas' metrics, in PromQL.
        path: of the file; None for Prometheus.
        clocks: by which users live.
        lead: from a forecast to what it is about.
    """

    prometheus: Prometheus | None
    selector: str
    path: Path | None
    clocks: ZoneInfo
    lead: timedelta

    def forecaster(self, weeks: int) -> tuple[Forecaster, datetime]:
        """A forecaster with the demand of the last weeks, and when that ends."""
        if self.path is not None:
            points = _read(self.path)
            now = max(point.at for point in points)
        else:
            now = datetime.now(UTC)
            asked = cast("Prometheus", self.prometheus)
            points = DemandHistory(asked, self.selector, weeks).read(now)
        return Forecaster(points, self.clocks, self.lead), now


def _source(
    prometheus: Prometheus | None, selector: str, csv_path: Path | None, timezone: str, lead: float
) -> DemandSource:
    if (prometheus is None) == (csv_path is None):
        raise click.UsageError("Use --prometheus or --csv.")
    try:
        clocks = zone(timezone)
    except ValueError as error:
        raise Failure(f"{error}.", Exit.CONFIG) from None
    return DemandSource(prometheus, selector, csv_path, clocks, timedelta(minutes=lead))


_demand = options.combined(
    options.prometheus,
    options.converted(
        "source",
        _source,
        options.selector,
        click.option(
            "--csv",
            "csv_path",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Demand from a file: lines of a time and requests at once.",
        ),
        options.option("--timezone", default="UTC", help="By whose clocks users live."),
        options.option(
            "--lead",
            type=click.FloatRange(1, 120),
            default=12.0,
            help="Minutes from a forecast to what it is about.",
        ),
    ),
    click.option("--json", "as_json", is_flag=True, help="Write JSON."),
)


@click.group()
def forecast() -> None:
    """What demand to expect: as usual at this time of the week, times what is going on now."""


@forecast.command()
@_demand
@options.option("--hours", type=click.FloatRange(0.25, 168), default=24.0, help="How far.")
def show(
    *,
    source: DemandSource,
    as_json: bool,
    hours: float,
) -> None:
    """Print what to expect in the next hours, with a band that 90 % of demands should be in.

    Exit codes: 0 done; 69 Prometheus does not answer; 75 the data are too thin; 78 something given
    is wrong.
    """
    known, now = source.forecaster(HISTORY_WEEKS)
    ahead = [timedelta(minutes=minutes) for minutes in range(15, int(hours * 60) + 1, 15)]
    rows = [row for each in ahead if (row := known.forecast(now, each)) is not None]
    if not rows:
        raise _thin()
    if as_json:
        for row in rows:
            click.echo(json.dumps(asdict(row) | {"at": row.at.isoformat()}))
        return
    click.echo(f"{'time':16}  {'expected':>8}  {'low':>8}  {'high':>8}  requests at once")
    for row in rows:
        at = row.at.astimezone(source.clocks)
        click.echo(f"{at:%Y-%m-%d %H:%M}  {row.expected:8.1f}  {row.low:8.1f}  {row.high:8.1f}")


@forecast.command()
@_demand
@options.option("--days", type=click.IntRange(1, 60), default=7, help="How many to try.")
@click.option(
    "--plot",
    "plot_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw it, e.g. into backtest.png or .svg.",
)
def backtest(
    *,
    source: DemandSource,
    as_json: bool,
    days: int,
    plot_path: Path | None,
) -> None:
    """Make the forecasts of the last days, each from what was known then, and compare.

    Exit codes: 0 done; 69 Prometheus does not answer, or --plot needs matplotlib; 74 the picture
    cannot be written; 75 the data are too thin; 78 something given is wrong.
    """
    known, now = source.forecaster(HISTORY_WEEKS + -(-days // 7))
    lead = source.lead / timedelta(minutes=1)
    result = backtests.backtest(known, now - timedelta(days=days), now)
    if result is None:
        raise _thin()
    if plot_path:
        _draw(result, plot_path, source.clocks, f"Forecasts {lead:g} minutes ahead, {days} days")
    if as_json:
        click.echo(json.dumps(asdict(result) | {"rows": len(result.rows)}))
        return
    click.echo(f"{len(result.rows)} of {result.asked} forecasts, {lead:g} minutes ahead:")
    click.echo(f"{'expecting':22}  {'off by':>7}  {'bias':>7}")
    for name, score in (
        ("the forecast", result.forecast),
        ("what was a week before", result.last_week),
        ("no change", result.before),
    ):
        click.echo(f"{name:22}  {score.error:7.1%}  {score.bias:+7.1%}")
    click.echo(
        f"{result.inside:.1%} of demands were within the band, {result.covered:.1%} not above."
    )


def _draw(result: Backtest, path: Path, clocks: ZoneInfo, title: str) -> None:
    try:
        from keepalive.forecasting.picture import draw

        draw(result, path, title, clocks)
    except ModuleNotFoundError as error:
        raise Failure(f"--plot needs {error.name}: {bring('plan')}", Exit.UNAVAILABLE) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Failure(f"{path} cannot be written: {reason}.", Exit.CANNOT_WRITE) from None


def _read(path: Path) -> tuple[Point, ...]:
    """Lines of a time, ISO 8601 or seconds since 1970, and a number; a head may be above them."""
    try:
        lines = list(csv.reader(path.read_text().splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise Failure(f"{path} cannot be read: {reason}.", Exit.CONFIG) from None
    points = []
    for number, line in enumerate(lines, 1):
        try:
            points.append(Point(_time(line[0].strip()), float(line[1])))
        except (ValueError, IndexError, OverflowError, OSError):
            if number > 1:
                raise Failure(
                    f"{path}, line {number}: a time and a number are needed, such as"
                    " 2026-11-30T08:05:00+01:00,3.5",
                    Exit.CONFIG,
                ) from None
    if not points:
        raise Failure(f"{path} has no line of a time and a number.", Exit.CONFIG)
    return tuple(points)


def _time(text: str) -> datetime:
    try:
        return datetime.fromtimestamp(float(text), UTC)
    except ValueError:
        at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _thin() -> Failure:
    return Failure(
        "The data are too thin for forecasts: three weeks at least are needed. Until then the"
        " schedule decides alone.",
        Exit.AGAIN,
    )
