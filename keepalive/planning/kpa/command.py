"""`ember kpa`: what Knative's autoscaler would do with a load, tick by tick."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from keepalive.options import Duration, option
from keepalive.planning.kpa.replay import COLUMNS, replay
from keepalive.planning.kpa.settings import Averaging, InvalidSetting, read
from keepalive.planning.traces import steps

if TYPE_CHECKING:
    from keepalive.planning.kpa.settings import AutoscalerSettings

_AFTER_S = 300
"""Seconds that a replay goes on after the load and the autoscaler's own periods."""


def pairs(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> list[tuple[str, str]]:
    """`key=value` of the command line, taken apart."""
    found = []
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not like max-scale=25.")
        found.append((key.strip(), value))
    return found


@click.command()
@click.argument(
    "trace", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="TRACE.csv"
)
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    callback=pairs,
    help="A setting of the autoscaler by the name of its annotation or in config-autoscaler, e.g. "
    "max-scale=25 or stable-window=40s; may be repeated.",
)
@option(
    "--container-concurrency",
    type=click.IntRange(0, 1000),
    default=0,
    help="Requests that a replica works on at once; 0 for any number.",
)
@option(
    "--cold-start",
    type=Duration(),
    default=10.0,
    help="Seconds until a wanted replica is ready.",
)
@click.option(
    "--until",
    type=click.IntRange(0),
    help="The last second; without it, well after the last line of the trace.",
)
def kpa(
    trace: Path,
    *,
    settings: list[tuple[str, str]],
    container_concurrency: int,
    cold_start: float,
    until: int | None,
) -> None:
    """Show what Knative's autoscaler would decide for the load in TRACE.csv, every 2 seconds.

    Lines of TRACE.csv are `seconds,load`: requests at once (or with metric=rps, per second) from
    then on. It starts with a new revision of which the first replica is being made.

    The columns: replicas that are ready, and what the Deployment is set to; averages over the
    stable and the panic window; whether it panics; replicas desired, and wanted after all rules
    (-1: not known yet); the excess burst capacity; whether the activator is in the path; where the
    revision is.
    """
    try:
        chosen = read(settings, container_concurrency)
    except InvalidSetting as error:
        raise click.BadParameter(str(error), param_hint="--set") from None
    load = steps.read(trace)
    if until is None:
        periods = chosen.stable_window_s + chosen.scale_down_delay_s + chosen.pod_retention_s
        until = int(load[-1][0] + periods) + _AFTER_S
    lines = [header(chosen), ",".join(COLUMNS)]
    lines += (",".join(row.plain()) for row in replay(load, chosen, cold_start, until))
    click.echo("\n".join(lines))


def header(settings: AutoscalerSettings) -> str:
    """The settings in force, as one line of comment."""
    total, target = settings.goal
    averaging = "" if settings.averaging is Averaging.LINEAR else settings.averaging
    parts = {
        "target": _number(target),
        "total": _number(total),
        "tbc": _number(settings.target_burst_capacity),
        "panicThreshold": _number(settings.panic_threshold),
        "stableWindow": _period(settings.stable_window_s),
        "panicWindow": _period(settings.panic_window_s),
        "scaleDownDelay": _period(settings.scale_down_delay_s),
        "maxUp": _number(settings.max_scale_up_rate),
        "maxDown": _number(settings.max_scale_down_rate),
        "initial": settings.initial_scale,
        "activation": settings.activation_scale,
        "min": settings.min_scale,
        "max": settings.max_scale,
        "grace": _period(settings.scale_to_zero_grace_s),
        "retention": _period(settings.pod_retention_s),
        "metric": settings.metric,
        "algorithm": f'"{averaging}"',
    }
    return "# decider: " + " ".join(f"{name}={value}" for name, value in parts.items())


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _period(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours}h{minutes}m{_number(rest)}s"
    return f"{minutes}m{_number(rest)}s" if minutes else f"{_number(rest)}s"
