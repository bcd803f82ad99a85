"""One round of the pre-scaler: read, look, decide, change. All that lasts is in the cluster.

A round takes the Lease, so that two pre-scalers do not decide on each other's halves; and it changes
only what is as it was read, so that even without the Lease nothing is lost. Batch replicas are given
less before online ones are given more, and more only after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from keepalive import signals
from keepalive.cluster import hpa, knative, target
from keepalive.cluster.client import Conflict, Missing
from keepalive.cluster.knative import Revisions
from keepalive.cluster.lease import Lease, peek
from keepalive.decide import Samples, Spec, decide
from keepalive.failure import Exit, Failure
from keepalive.forecast import STEP, WEEKS, Forecaster
from keepalive.remember import dump, load

if TYPE_CHECKING:
    from datetime import datetime

    from keepalive.cluster.client import Cluster
    from keepalive.cluster.target import Target
    from keepalive.decide import Decision
    from keepalive.forecast import Forecast
    from keepalive.pool import Model, Node
    from keepalive.prometheus import Prometheus
    from keepalive.schedule import Schedule

_TRIES = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a pre-scaler is for.

    Attributes:
        service: the Knative Service.
        hpa: the HorizontalPodAutoscaler in place of it; None for the Service.
        prometheus: who tells what there is; None looks at the schedule alone.
        matchers: of the replicas' metrics, in PromQL.
        node_matchers: of DCGM's metrics, in PromQL.
        objective_s: seconds within which 95 % of swaps should be answered.
        per_replica: requests that a replica is meant to have at once; None for the autoscaler's.
        gpus: of one replica; None for what its pods ask for.
        knative: the version of Knative Serving; None to look it up.
        dry: whether to change nothing.
    """

    service: str = "ember"
    hpa: str | None = None
    prometheus: Prometheus | None = None
    matchers: str = ""
    node_matchers: str = ""
    objective_s: float | None = None
    per_replica: float | None = None
    gpus: int | None = None
    knative: str | None = None
    dry: bool = False

    @property
    def lease(self) -> str:
        """The name of the Lease."""
        return f"ember-prescale-{self.hpa or self.service}"


@dataclass(frozen=True, slots=True)
class Seen:
    """What Prometheus tells.

    Attributes:
        model: the model layer.
        node: the node layer.
        forecast: what is to come; None when data are too thin.
        blind: why nothing is known, if it is not.
    """

    model: Model | None = None
    node: Node | None = None
    forecast: Forecast | None = None
    blind: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A floor that has another value; in a dry run, that would have."""

    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Round:
    """What came of a round.

    Attributes:
        name: of what has the floor.
        before: the floor before.
        decision: what was decided.
        seen: what it was decided on.
        changes: what was changed, in this order.
        complaints: what went wrong without stopping it.
    """

    name: str
    before: int
    decision: Decision
    seen: Seen
    changes: tuple[Change, ...]
    complaints: tuple[str, ...] = ()


def once(
    now: datetime, cluster: Cluster, wanted: Wanted, schedule: Schedule, lease: Lease
) -> Round:
    """Do one round under a Lease, and keep what is to be remembered.

    Args:
        now: the time.
        cluster: to change.
        wanted: what for.
        schedule: which floors are wanted when.
        lease: that was taken or renewed for this round; it is renewed.

    Raises:
        Taken: the Lease was lost meanwhile.
        Failure: something is wrong, not allowed, or does not answer.
    """
    done = _round(now, cluster, wanted, schedule, lease.memory)
    lease.renew(dump(done.decision.memory), now, release=False)
    return done


def rehearse(now: datetime, cluster: Cluster, wanted: Wanted, schedule: Schedule) -> Round:
    """Say what a round would do; nothing is changed, not even the Lease.

    Raises:
        Failure: something is wrong, not allowed, or does not answer.
    """
    wanted = replace(wanted, dry=True)
    return _round(now, cluster, wanted, schedule, peek(cluster, wanted.lease))


def look(now: datetime, prometheus: Prometheus | None, wanted: Wanted, schedule: Schedule) -> Seen:
    """What there is and what is to come; a Prometheus that does not answer is no reason to stop."""
    if prometheus is None:
        return Seen()
    try:
        model = signals.model(prometheus, wanted.matchers)
        node = signals.node(prometheus, wanted.node_matchers)
        forecast = forecaster(now, prometheus, wanted.matchers, schedule).forecast(now)
    except Failure as failure:
        return Seen(blind=str(failure))
    if model is None:
        matchers = f" with {wanted.matchers}" if wanted.matchers else ""
        blind = (
            f"Prometheus at {prometheus.url} knows no replica{matchers}: see that it scrapes the"
            " pods, and use --selector."
        )
        return Seen(None, node, forecast, blind)
    return Seen(model, node, forecast)


def forecaster(
    now: datetime, prometheus: Prometheus, matchers: str, schedule: Schedule, *, weeks: int = WEEKS
) -> Forecaster:
    """A forecaster with all that Prometheus knows of that many weeks, and one for the band.

    Raises:
        Failure: Prometheus does not answer.
    """
    end = now - timedelta(seconds=now.timestamp() % STEP.total_seconds())
    begin = end - timedelta(days=7 * (weeks + 1), hours=2)
    points = prometheus.points(signals.demand(matchers), begin, end, STEP)
    return Forecaster(points, schedule.timezone, schedule.lead, schedule.events)


def _round(
    now: datetime, cluster: Cluster, wanted: Wanted, schedule: Schedule, memory: str | None
) -> Round:
    if not wanted.hpa:
        knative.check_version(cluster, wanted.knative)
    seen = look(now, wanted.prometheus, wanted, schedule)
    for _ in range(_TRIES):
        try:
            return _attempt(now, cluster, wanted, schedule, memory, seen)
        except (Conflict, Missing):
            continue  # what was read is old: read again
    raise Failure(
        f"Somebody else keeps changing {wanted.hpa or wanted.service}; try again later.", Exit.AGAIN
    )


def _attempt(
    now: datetime,
    cluster: Cluster,
    wanted: Wanted,
    schedule: Schedule,
    memory: str | None,
    seen: Seen,
) -> Round:
    """Read, decide and change once.

    Raises:
        Conflict: something was changed meanwhile.
        Missing: something has gone meanwhile.
        Failure: something is wrong, not allowed, or does not answer.
    """
    if wanted.hpa:
        found = Revisions(hpa.scaler(cluster, wanted.hpa), ())
    else:
        found = knative.revisions(cluster, wanted.service, schedule.pools)
    main = found.main
    batch = (
        knative.revisions(cluster, schedule.batch.service).main
        if schedule.batch and not wanted.hpa
        else None
    )
    spec = _spec(wanted, schedule, main, batch)
    samples = Samples(
        floor=main.floor,
        memory=load(memory),
        model=seen.model,
        node=seen.node,
        expected=seen.forecast.high if seen.forecast else None,
        held=main.held,
    )
    decision = decide(now, samples, spec)
    plan = [(main, decision.floor, decision.why)]
    if decision.batch is not None and batch is not None:
        why = f"{decision.floor} online replicas; {decision.why}"
        given = (batch, decision.batch, why)
        plan.insert(0 if decision.batch < batch.floor else 1, given)
    for share in found.others:
        if (floor := share.wanted(decision.floor)) is not None:
            plan.append((share.target, floor, _why(share, decision.floor)))
    changes, complaints = [], [seen.blind] if seen.blind else []
    for each, floor, why in plan:
        if floor == each.floor or each.held is not None:
            continue
        if not wanted.dry and (failure := target.change(cluster, each, floor, why, now)):
            complaints.append(f"{each.name} has its new floor, but no Event tells so: {failure}")
        changes.append(Change(each.name, each.floor, floor))
    return Round(main.name, main.floor, decision, seen, tuple(changes), tuple(complaints))


def _spec(wanted: Wanted, schedule: Schedule, main: Target, batch: Target | None) -> Spec:
    per_replica = wanted.per_replica or main.per_replica
    if per_replica is None:
        raise Failure(
            f"The autoscaler of {main.name} does not reckon in requests at once, so say how many a"
            " replica is meant to have: --per-replica 3",
            Exit.CONFIG,
        )
    gpus = wanted.gpus or main.gpus
    base = schedule.floor * gpus * 24
    if base > schedule.gpu_hours_per_day:
        raise Failure(
            f"The schedule's floor of {schedule.floor} alone takes {base} GPU-hours a day, and"
            f" gpu_hours_per_day is {schedule.gpu_hours_per_day:g}: change one of them.",
            Exit.CONFIG,
        )
    return Spec(
        schedule=schedule if batch else replace(schedule, batch=None),
        per_replica=per_replica,
        gpus=gpus,
        batch_gpus=batch.gpus if batch else 1,
        objective_s=wanted.objective_s,
        most=main.most,
        least=main.least,
        watching=wanted.prometheus is not None,
    )


def _why(share: knative.Share, main: int) -> str:
    if share.floor is not None:
        return "the floor of its pool"
    if share.percent:
        return f"{share.percent:g}% of the traffic, for which {main} replicas are wanted"
    return "it has no traffic any more"


def exit_code(done: Round) -> int:
    """0, or that a round was done with less than it should have known or told."""
    return Exit.AGAIN if done.complaints else 0


def hours(done: Round) -> float:
    """GPU-hours of floor so far today."""
    return math.floor(done.decision.memory.spent * 100) / 100
