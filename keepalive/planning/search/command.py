"""`ember plan`: the cheapest settings that keep an objective."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from keepalive.failure import Exit
from keepalive.options import Duration, option
from keepalive.planning.simulation.options import read_options, require, simulation_options
from keepalive.planning.traces.steps import UnreadableTrace
from keepalive.times import zone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from keepalive.planning.search.trial import Trial, Trials

_MONDAY = "2026-03-02"
_ROOM = 1.25
"""The ceiling, without one given, over what the peak needs."""


class Zone(click.ParamType[ZoneInfo]):
    """A time zone by its name."""

    name = "zone"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> ZoneInfo:
        """Find it."""
        try:
            return zone(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


@click.command()
@simulation_options
@option(
    "--p99",
    type=Duration(),
    default=0.8,
    help="The highest 99th percentile of any five minutes, e.g. 800ms.",
)
@option(
    "--lost",
    type=click.FloatRange(0, 1),
    default=0.0,
    help="The largest part of all requests that may be refused or given up.",
)
@option("--least", type=click.IntRange(0), default=0, help="Replicas.")
@click.option("--ceiling", type=click.IntRange(1), help="The most replicas.")
@option(
    "--begin",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"]),
    default=_MONDAY,
    help="When the load begins, by the clocks of --timezone.",
)
@option("--timezone", type=Zone(), default="UTC", help="Of the schedule.")
@option("--name", default="ember", help="Of the Knative Service.")
@option(
    "--tries",
    type=click.IntRange(9),
    default=60,
    help="The most simulations; each takes seconds for every day.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for kustomization.yaml, schedule.toml, plan.json, pareto.png and plan.png.",
)
@click.option("--explain", "explained", is_flag=True, help="Say in words why.")
@click.option("--quiet", is_flag=True, help="Do not tell each simulation.")
@click.pass_context
def plan(
    context: click.Context,
    /,
    *,
    p99: float,
    lost: float,
    least: int,
    ceiling: int | None,
    begin: datetime,
    timezone: ZoneInfo,
    name: str,
    tries: int,
    out: Path | None,
    explained: bool,
    quiet: bool,
    **common: Any,
) -> None:
    """Find the cheapest settings that keep an objective; LOAD is as for `ember simulate`.

    Exit code 75: nothing that was tried keeps the objective; what comes nearest is shown.
    """
    require("numpy", "cronsim", *(["matplotlib"] if out else []))
    known = read_options(**common)
    from keepalive.planning.search.descent import Bounds, search
    from keepalive.planning.search.explain import explain
    from keepalive.planning.search.naive import naive
    from keepalive.planning.search.trial import Objective, Trials
    from keepalive.planning.simulation.scaling import WORKING

    if not known.rates.any():
        raise UnreadableTrace("There is nothing to plan for: the load has no requests.")
    peak = float(known.rates.max()) / known.service.most_per_second
    most = ceiling or max(1, math.ceil(peak / WORKING * _ROOM))
    if least > most:
        raise click.BadParameter(f"It is above the ceiling of {most}.", param_hint="--least")
    trials = Trials(known, Objective(p99, lost), begin.replace(tzinfo=timezone), timezone)

    def report(trial: Trial) -> None:
        if not quiet:
            click.echo(f"{len(trials.done):>3} {_row(trial)}", err=True)

    best, proven = search(trials, Bounds(least, most, tries), report)
    others = list(naive(trials, most))
    click.echo(_table([best, *others]))
    if explained:
        click.echo()
        for sentence in explain(best, trials):
            click.echo(f"- {sentence}")
    if out:
        _written(out, name, best, others, trials)
    if not proven:
        what = "with other chances" if best.kept else "at all"
        click.echo(f"Nothing that was tried keeps the objective {what}.", err=True)
        context.exit(Exit.AGAIN)


def _row(trial: Trial) -> str:
    from keepalive.planning.pictures.style import seconds

    choice = trial.choice
    assert choice is not None  # noqa: S101
    return (
        f"{'kept  ' if trial.kept else 'missed'} {trial.outcome.gpu_hours:9.1f} GPU-hours"
        f"  worst p99 {seconds(trial.worst_p99_s):>7}  lost {trial.outcome.lost:>7,}"
        f"  {choice.metric} {choice.use:.0%} of batch {choice.batch}, cover {choice.cover},"
        f" floor {choice.floor}, window {choice.window_s} s, delay {choice.delay_s} s"
    )


def _table(trials: Sequence[Trial]) -> str:
    from keepalive.planning.pictures.style import seconds

    base = trials[1].outcome.gpu_hours
    names = ("", "GPU-hours", "of static", "p99", "worst p99", "lost", "cold", "objective")
    lines = ["{:<24}{:>10}{:>10}{:>9}{:>11}{:>10}{:>10}  {}".format(*names)]
    for trial in trials:
        outcome = trial.outcome
        lines.append(
            f"{trial.name:<24}{outcome.gpu_hours:>10.1f}{outcome.gpu_hours / base:>10.0%}"
            f"{seconds(outcome.latency(0.99)):>9}{seconds(trial.worst_p99_s):>11}"
            f"{outcome.lost:>10,}{outcome.met_cold:>10,}  {'kept' if trial.kept else 'missed'}"
        )
    return "\n".join(lines)


def _written(out: Path, name: str, best: Trial, others: Sequence[Trial], trials: Trials) -> None:
    from keepalive.planning.pictures import search as picture
    from keepalive.planning.pictures import simulation as simulated
    from keepalive.planning.search import files

    choice = best.choice
    assert choice is not None  # noqa: S101
    out.mkdir(parents=True, exist_ok=True)
    service = trials.given.service
    plan_json = {
        "settings": files.annotated(choice, service),
        "container_concurrency": 2 * choice.batch,
        "largest_batch": choice.batch,
        "trials": {trial.name: trial.outcome.plain() for trial in [best, *others]},
    }
    (out / "kustomization.yaml").write_text(files.component(choice, service, name))
    (out / "schedule.toml").write_text(files.toml(trials.schedule(choice)))
    (out / "plan.json").write_text(json.dumps(plan_json, indent=2) + "\n")
    picture.draw(list(trials.done.values()), others, best, out / "pareto.png")
    simulated.draw(best.outcome, out / "plan.png", "As planned", best.objective.p99_s)
