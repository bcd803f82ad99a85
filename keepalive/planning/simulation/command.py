"""`ember simulate`: what a scaling rule would make of a load."""

from __future__ import annotations

import json
import math
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from keepalive.options import Duration, option
from keepalive.planning.hpa import HpaSpec
from keepalive.planning.kpa.command import pairs
from keepalive.planning.kpa.settings import InvalidSetting
from keepalive.planning.kpa.settings import read as settings_of
from keepalive.planning.simulation.options import read_options, require, simulation_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from keepalive.planning.kpa.settings import AutoscalerSettings
    from keepalive.planning.simulation.options import SimulationInput
    from keepalive.planning.simulation.scaling import Scaling

_MONDAY = datetime(2026, 3, 2)  # noqa: DTZ001
_QUEUE = 320
"""Requests that a replica without Knative lets wait, for want of anything better to assume."""


@click.command()
@simulation_options
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    callback=pairs,
    help="A setting of Knative's autoscaler, as for `ember kpa`; may be repeated.",
)
@click.option(
    "--container-concurrency",
    type=click.IntRange(0, 1000),
    help="Requests that a replica works on at once; twice the largest batch if not given.",
)
@click.option("--static", type=click.IntRange(1), help="Instead: always so many replicas.")
@click.option(
    "--hpa",
    type=click.IntRange(1, 100),
    metavar="PERCENT",
    help="Instead: a HorizontalPodAutoscaler that keeps the replicas so busy, between min-scale "
    "and max-scale.",
)
@click.option(
    "--schedule",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The pre-scaler's schedule, whose floors count.",
)
@option(
    "--begin",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"]),
    default=_MONDAY.strftime("%Y-%m-%d"),
    help="When the load begins, by the schedule's clocks.",
)
@click.option("--objective", type=Duration(), help="What the 99th percentile is to stay below.")
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Draw it: a file that ends with .png, .svg or .html.",
)
@click.option("--title", help="Of the picture.")
@click.option("--exact", is_flag=True, help="Simulate every second, also those like others.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def simulate(
    *,
    settings: list[tuple[str, str]],
    container_concurrency: int | None,
    static: int | None,
    hpa: int | None,
    schedule: Path | None,
    begin: datetime,
    objective: float | None,
    picture: Path | None,
    title: str | None,
    exact: bool,
    as_json: bool,
    **common: Any,
) -> None:
    """Simulate the requests of LOAD on replicas that a rule adds and removes.

    LOAD is a CSV file of `seconds,requests per second` from then on, or a shape: steady:50,
    tide:50-800, flash:50-800 or spikes:50-400, with settings after commas as in
    tide:50-800,hour=20,sharpness=2,weekend=0.5 or flash:50-800,hour=12,rise=5m,hold=30m,fall=30m or
    spikes:50-400,every=1h,length=2m.
    """
    if static and hpa:
        raise click.UsageError("--static and --hpa cannot both be.")
    require("numpy", *(["cronsim"] if schedule else []), *(["matplotlib"] if picture else []))
    known = read_options(**common)
    from keepalive.planning.simulation.floors import floors
    from keepalive.planning.simulation.run import Scenario
    from keepalive.planning.simulation.run import simulate as run

    concurrency = container_concurrency
    if concurrency is None:
        concurrency = min(1000, 2 * known.service.batch)
    try:
        chosen = settings_of(settings, concurrency)
    except InvalidSetting as error:
        raise click.BadParameter(str(error), param_hint="--set") from None
    planned = None
    if schedule:
        from keepalive.prescaler.schedule_file import read as scheduled

        wanted = scheduled(schedule)
        planned = floors(wanted, begin.replace(tzinfo=wanted.timezone), len(known.rates))
    outcome = run(
        Scenario(
            known.rates,
            known.service.up_to(concurrency) if concurrency else known.service,
            known.cold_starts,
            _rule(chosen, known, static, hpa),
            planned,
            known.nodes,
            known.deadline_s,
            failures_per_hour=known.failures_per_hour,
            gpu_price=known.price,
            seed=known.seed,
            exact=exact,
        )
    )
    if picture:
        _drawn(outcome, picture, title or common["load"], objective)
    if as_json:
        click.echo(json.dumps(outcome.plain(), indent=2))
        return
    from keepalive.planning.pictures.simulation import summary

    for name, value in summary(outcome):
        click.echo(f"{name:<24}{value:>14}")


def _rule(
    settings: AutoscalerSettings, known: SimulationInput, static: int | None, hpa: int | None
) -> Callable[[], Scaling]:
    """The rule that was asked for, to be made when the simulation begins."""
    from keepalive.planning.simulation import scaling

    most = settings.max_scale or 1000
    busy = known.service.most_per_second * scaling.WORKING
    start = min(most, max(settings.min_scale, math.ceil(float(known.rates[0]) / busy)))

    if static:
        return lambda: scaling.StaticScaling(static, _QUEUE)
    if hpa:
        spec = HpaSpec(hpa / 100, most, max(1, settings.min_scale))
        return lambda: scaling.HpaScaling(spec, _QUEUE, start)
    return lambda: scaling.KnativeScaling(settings, known.service.batch, start)


def _drawn(outcome: Any, path: Path, title: str, objective: float | None) -> None:
    from keepalive.planning.pictures.simulation import draw

    try:
        draw(outcome, path, title, objective)
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="--picture") from None
