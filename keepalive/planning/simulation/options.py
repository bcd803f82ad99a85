"""What `ember simulate` and `ember plan` have in common on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from keepalive.failure import Exit, Failure, bring
from keepalive.options import Duration, combined, option

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from keepalive.planning.simulation.fleet import Nodes
    from keepalive.planning.simulation.service import BatchTimes

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_COUNTS = {"held", "most"}
_TIMES = {"provision", "keep"}


@dataclass(frozen=True, slots=True)
class SimulationInput:
    """What is known of the load, the replicas and the cluster.

    Attributes:
        rates: (seconds,) requests per second.
        service: how long batches take.
        cold_starts: seconds until a replica is ready, of which each start is one by chance.
        nodes: the GPUs; None for as many as are asked for, at once.
        deadline_s: how long a request may wait.
        failures_per_hour: how often each replica dies.
        price: of a GPU for an hour.
        seed: of all chance.
    """

    rates: NDArray[np.float64]
    service: BatchTimes
    cold_starts: tuple[float, ...]
    nodes: Nodes | None
    deadline_s: float
    failures_per_hour: float
    price: float
    seed: int


def simulation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the common options to a command, which passes them to `read_options`."""
    options = [
        click.argument("load"),
        click.option("--days", type=click.FloatRange(0, min_open=True), help="How long, in days."),
        click.option("--per-minute", is_flag=True, help="The file has requests per minute."),
        click.option(
            "--service",
            type=_FILE,
            help='Measured batches as JSON: {"batch_seconds": {"1": 0.012, "8": 0.04}}.',
        ),
        option(
            "--batch-base",
            type=Duration(),
            default=0.012,
            help="Without --service: seconds of a batch, beside its requests "
            "(ember_batch_base_seconds).",
        ),
        option(
            "--batch-item",
            type=Duration(),
            default=0.006,
            help="Without --service: seconds for each request in it (ember_batch_item_seconds).",
        ),
        click.option("--batch", type=click.IntRange(1, 1000), help="The largest batch."),
        option(
            "--cold-start",
            default="30",
            metavar="SECONDS|FILE",
            help="Seconds until a replica is ready, or what `ember coldstart --json` wrote.",
        ),
        option(
            "--before-start",
            type=Duration(),
            default=0.0,
            help="Seconds before the process starts: scheduling, pulling the image.",
        ),
        click.option(
            "--nodes",
            metavar="held=2,most=20,provision=3m,keep=10m",
            help="GPUs that are always there, the most, how long another takes, and how long an "
            "idle one is kept; without it, as many as are asked for are there at once.",
        ),
        option(
            "--deadline",
            type=Duration(),
            default=45.0,
            help="Seconds that a request may wait.",
        ),
        option(
            "--failures",
            type=click.FloatRange(0),
            default=0.0,
            help="How often a replica dies, per hour.",
        ),
        option(
            "--price",
            type=click.FloatRange(0),
            default=0.0,
            help="Of a GPU for an hour.",
        ),
        option("--seed", type=int, default=0, help="Of all chance."),
    ]
    shared: Callable[..., Any] = combined(*options)(command)
    return shared


def require(*modules: str) -> None:
    """See that modules are there, before anything takes long.

    Raises:
        Failure: one is not; the text says what to install.
    """
    for module in modules:
        if find_spec(module) is None:
            raise Failure(f"This needs {module}: {bring('plan')}", Exit.UNAVAILABLE)


def read_options(
    *,
    load: str,
    days: float | None,
    per_minute: bool,
    service: Path | None,
    batch_base: float,
    batch_item: float,
    batch: int | None,
    cold_start: str,
    before_start: float,
    nodes: str | None,
    deadline: float,
    failures: float,
    price: float,
    seed: int,
) -> SimulationInput:
    """What the options say.

    Raises:
        click.BadParameter: an option is not possible.
        UnreadableTrace: a file is not as it should be.
    """
    from keepalive.planning.simulation import service as services
    from keepalive.planning.traces.load import load as loaded

    try:
        rates = loaded(load, int(days * 86_400) if days else None, per_minute=per_minute)
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="LOAD") from None
    if service:
        replica = services.read(service, batch)
    else:
        replica = services.line(batch_base, batch_item, batch or 16)
    starts = _cold_starts(cold_start)
    return SimulationInput(
        rates,
        replica,
        tuple(before_start + seconds for seconds in starts),
        _nodes(nodes) if nodes else None,
        deadline,
        failures,
        price,
        seed,
    )


def _cold_starts(text: str) -> tuple[float, ...]:
    from keepalive.planning.simulation.service import cold_starts

    if Path(text).exists():
        return cold_starts(Path(text))
    return (Duration().convert(text, None, None),)


def _nodes(text: str) -> Nodes:
    from keepalive.planning.simulation.fleet import Nodes

    found: dict[str, float] = {"held": 0, "provision": 180.0, "keep": 600.0}
    for part in text.split(","):
        key, _, value = part.partition("=")
        if key in _COUNTS and value.isdecimal():
            found[key] = int(value)
        elif key in _TIMES and value:
            found[key] = Duration().convert(value, None, None)
        else:
            raise click.BadParameter(
                f"{part!r} is not like held=2,most=20,provision=3m,keep=10m.", param_hint="--nodes"
            )
    if found.get("most", 0) < max(1, found["held"]):
        raise click.BadParameter(
            "most= is needed, at least 1 and not below held=.", param_hint="--nodes"
        )
    return Nodes(int(found["held"]), int(found["most"]), found["provision"], found["keep"])
