"""`ember prescale`: raises and lowers the warm floor, once or again and again."""

from __future__ import annotations

import json
import secrets
import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from keepalive import options
from keepalive.failure import Exit, Failure
from keepalive.prescaler import schedule_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from keepalive.cluster.client import Cluster
    from keepalive.prescaler.config import PrescalerConfig
    from keepalive.prescaler.prescaler import Prescaler, Round
    from keepalive.prescaler.schedule import Schedule
    from keepalive.prometheus import Prometheus

_LEASE_S = 55.0
_LOOK_S = 2.0
"""How often is looked for a new Revision, which needs its floor before it is ready."""
_LEASE_ROUNDS = 2.5
_COUNT = click.IntRange(1)


@click.command()
@click.option(
    "--schedule",
    "schedule_path",
    metavar="FILE.toml",
    type=click.Path(path_type=Path),
    required=True,
    help="Which floors are wanted when.",
)
@options.combined(options.service, options.hpa)
@click.option("--namespace", help="Where it is; else that of the configuration.")
@options.combined(options.prometheus, options.selector)
@click.option(
    "--gpu-selector", metavar="MATCHERS", default="", help="The same for DCGM's metrics of GPUs."
)
@click.option(
    "--objective",
    type=options.SECONDS,
    help="Seconds within which 95 % of swaps should be answered.",
)
@click.option(
    "--per-replica",
    type=click.FloatRange(0, min_open=True),
    help="Requests that a replica is meant to have at once; else what its autoscaler aims at.",
)
@click.option("--gpus", type=_COUNT, help="GPUs of a replica; else what its pods ask for.")
@click.option(
    "--knative-version", help="Of Knative Serving, where it cannot be looked up, e.g. 1.21."
)
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@click.option(
    "--at",
    metavar="TIME",
    help="With --dry-run: ask the schedule alone, no cluster; e.g. 2026-12-24T18:00.",
)
@click.option("--watch", is_flag=True, help="Do it again and again, until SIGTERM.")
@click.option(
    "--every", type=click.FloatRange(5, 300), default=60.0, help="With --watch: seconds. [60]"
)
@options.publisher
@click.option("--json", "as_json", is_flag=True, help="Write one line of JSON for each round.")
@click.pass_context
def prescale(
    context: click.Context,
    schedule_path: Path,
    *,
    service: str,
    hpa: str | None,
    namespace: str | None,
    prometheus: Prometheus | None,
    selector: str,
    gpu_selector: str,
    objective: float | None,
    per_replica: float | None,
    gpus: int | None,
    knative_version: str | None,
    dry_run: bool,
    at: str | None,
    watch: bool,
    every: float,
    publisher: Callable[..., None] | None,
    as_json: bool,
) -> None:
    """Raise and lower the warm floor as the schedule, the forecast and the replicas call for.

    It changes min-scale of the Revision that takes the traffic, which starts no new Revision, or
    minReplicas of a HorizontalPodAutoscaler. The annotation ember.dev/hold of the Service, or of
    the HorizontalPodAutoscaler, stops it.

    Exit codes: 0 done, or another pre-scaler is at it; 69 the cluster does not answer; 74 metrics
    could not be told; 75 done without all that should be known, or to be tried again; 77 not
    allowed; 78 the schedule or the cluster is not as needed.
    """
    if dry_run and watch:
        raise click.UsageError("Use --dry-run or --watch.")
    if at is not None and not dry_run:
        raise click.UsageError("--at is for --dry-run.")
    schedule = schedule_file.read(schedule_path)
    if at is not None:
        click.echo(_planned(schedule, at, as_json=as_json))
        return
    from keepalive.cluster.client import Cluster
    from keepalive.prescaler import metrics as pool_metrics
    from keepalive.prescaler.config import PrescalerConfig
    from keepalive.prescaler.prescaler import Prescaler

    config = PrescalerConfig(
        service=service,
        hpa=hpa,
        prometheus=prometheus,
        matchers=selector,
        node_matchers=gpu_selector,
        objective_s=objective,
        per_replica=per_replica,
        gpus=gpus,
        knative=knative_version,
    )

    def tell(done: Round) -> int:
        _show(done, as_json=as_json, dry=dry_run)
        if publisher:
            about = {"target": hpa or service}
            publisher(pool_metrics.registry(done, time.time()), job="ember-prescale", about=about)
        return Exit.AGAIN if done.complaints else 0

    try:
        connected = Cluster.connect(namespace)
    except Failure as failure:
        if not dry_run:
            raise
        click.echo(f"Warning: only the schedule is asked. {failure}", err=True)
        click.echo(_planned(schedule, None, as_json=as_json))
        return
    with connected as cluster:
        if watch:
            _watch(cluster, config, schedule_path, every, tell)
            return
        prescaler = Prescaler(cluster, config, schedule)
        if dry_run:
            context.exit(tell(prescaler.rehearse(datetime.now(UTC))))
        context.exit(_once(prescaler, _holder(), _LEASE_S, tell, last=True))


def _planned(schedule: Schedule, at: str | None, *, as_json: bool) -> str:
    from keepalive.prescaler.preview import moment, planned

    try:
        return planned(schedule, moment(at, schedule), as_json=as_json)
    except ValueError as error:
        raise click.BadParameter(
            f"{error}. Write it as 2026-12-24T18:00.", param_hint="--at"
        ) from None


def _once(
    prescaler: Prescaler,
    holder: str,
    lease_s: float,
    tell: Callable[[Round], int],
    *,
    last: bool,
) -> int:
    from keepalive.cluster.lease import Lease, LeaseTaken

    now, spell = datetime.now(UTC), timedelta(seconds=lease_s)
    try:
        lease = Lease.take(prescaler.cluster, prescaler.config.lease, holder, spell, now)
        done = prescaler.once(now, lease, last=last)
    except LeaseTaken as taken:
        click.echo(f"Nothing is done here: {taken}.", err=True)
        return 0
    return tell(done)


def _watch(
    cluster: Cluster,
    config: PrescalerConfig,
    schedule_path: Path,
    every: float,
    tell: Callable[[Round], int],
) -> None:
    """Rounds until a signal, each with the schedule as it is then; failures end none of them."""
    from keepalive.cluster.lease import Lease, LeaseTaken
    from keepalive.prescaler.observe import PoolObserver
    from keepalive.prescaler.prescaler import Prescaler

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    holder, lease_s = _holder(), every * _LEASE_ROUNDS
    observer = PoolObserver(config)
    known: str | None = None
    while not stop.is_set():
        try:
            prescaler = Prescaler(cluster, config, schedule_file.read(schedule_path), observer)
            _once(prescaler, holder, lease_s, tell, last=False)
        except Failure as failure:
            click.echo(f"Error: {failure}", err=True)
        known = _rest(stop, cluster, config, every, known)
    with suppress(LeaseTaken, Failure):  # else it ends by itself
        now = datetime.now(UTC)
        lease = Lease.take(cluster, config.lease, holder, timedelta(seconds=lease_s), now)
        lease.renew(lease.memory or "", now, release=True)


def _rest(
    stop: threading.Event,
    cluster: Cluster,
    config: PrescalerConfig,
    seconds: float,
    known: str | None,
) -> str | None:
    """Wait, but no longer than until there is a new Revision; the name of the last one."""
    from keepalive.cluster import knative

    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not stop.wait(min(left, _LOOK_S)):
        with suppress(Failure):  # the next round tells it
            found = None if config.hpa else knative.coming(cluster, config.service)
            if found not in {None, known}:
                return found
    return known


def _holder() -> str:
    return f"{socket.gethostname()}-{secrets.token_hex(4)}"


def _show(done: Round, *, as_json: bool, dry: bool) -> None:
    if as_json:
        click.echo(json.dumps(_plain(done) | {"dry_run": dry}))
        return
    verb = "would change" if dry else "changes"
    for change in done.changes:
        click.echo(f"{change.name}: the floor {verb} from {change.before} to {change.after}")
    decision = done.decision
    if done.name not in {change.name for change in done.changes}:
        click.echo(f"{done.name}: the floor stays at {done.before}")
    click.echo(f"  why: {decision.why}")
    if (model := done.observation.model) is not None:
        late = "" if model.p95_s is None else f", p95 {model.p95_s:.2f} s"
        click.echo(
            f"  seen: {model.ready} ready, {model.warming} warming, {model.in_flight:.1f} in"
            f" flight{late}: {str(decision.finding.state).replace('_', ' ')}"
        )
    if (forecast := done.observation.forecast) is not None:
        click.echo(
            f"  expected: {forecast.expected:.1f} requests at once at"
            f" {forecast.at:%H:%M} UTC, {forecast.low:.1f} to {forecast.high:.1f}"
        )
    for advice in decision.finding.advice:
        click.echo(f"  advice: {advice}")
    for note in done.notes:
        click.echo(f"Note: {note}", err=True)
    for complaint in done.complaints:
        click.echo(f"Warning: {complaint}", err=True)


def _plain(done: Round) -> dict[str, Any]:
    """For JSON."""
    decision, seen = done.decision, done.observation
    forecast = (
        asdict(seen.forecast) | {"at": seen.forecast.at.isoformat()} if seen.forecast else None
    )
    return {
        "target": done.name,
        "before": done.before,
        "floor": decision.floor,
        "need": decision.need,
        "why": decision.why,
        "state": decision.finding.state,
        "advice": decision.finding.advice,
        "batch": decision.batch,
        "changes": [asdict(change) for change in done.changes],
        "model": asdict(seen.model) if seen.model else None,
        "node": asdict(seen.node) if seen.node else None,
        "forecast": forecast,
        "gpu_hours_today": round(decision.memory.spent_gpu_hours, 2),
        "complaints": done.complaints,
        "notes": done.notes,
    }
