"""One round of the pre-scaler: read, look, decide, change. All that lasts is in the cluster.

A round takes the Lease, so that two pre-scalers do not decide on each other's halves; and it
changes only what is as it was read, so that even without the Lease nothing is lost. Batch replicas
are given less before online ones are given more, and more only after.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keepalive.cluster import hpa, knative, target
from keepalive.cluster.client import Conflict, Missing
from keepalive.cluster.lease import Taken, peek
from keepalive.failure import Exit, Failure
from keepalive.forecasting.forecast import HISTORY_WEEKS, Forecaster
from keepalive.prescaler import signals
from keepalive.prescaler.decide import Samples, Spec, decide
from keepalive.prescaler.remember import dump, load

if TYPE_CHECKING:
    from datetime import datetime

    from keepalive.cluster.client import Cluster
    from keepalive.cluster.knative import Share
    from keepalive.cluster.lease import Lease
    from keepalive.cluster.target import Target
    from keepalive.forecasting.forecast import Forecast
    from keepalive.prescaler.decide import Decision
    from keepalive.prescaler.pool import Model, Node
    from keepalive.prescaler.schedule import Schedule
    from keepalive.prometheus import Prometheus

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
        blind: why nothing is known of the replicas, if it is not.
        unforeseen: why the forecast could not be had; not why there is none.
    """

    model: Model | None = None
    node: Node | None = None
    forecast: Forecast | None = None
    blind: str | None = None
    unforeseen: str | None = None


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


@dataclass(frozen=True, slots=True)
class Prescaler:
    """Does rounds.

    Attributes:
        cluster: to change.
        wanted: what for.
        schedule: which floors are wanted when.
    """

    cluster: Cluster
    wanted: Wanted
    schedule: Schedule

    def once(self, now: datetime, lease: Lease, *, last: bool = True) -> Round:
        """Do a round under a Lease, and keep with it what is to be remembered.

        Args:
            now: the time.
            lease: that is ours.
            last: whether to let it go afterwards; a round that fails lets it go.

        Raises:
            Taken: the Lease was lost meanwhile.
            Failure: something is wrong, not allowed, or does not answer.
        """
        try:
            done = self._round(now, lease.memory, dry=False)
        except Failure:
            with suppress(Failure, Taken):
                lease.renew(lease.memory or "", now, release=True)
            raise
        lease.renew(dump(done.decision.memory), now, release=last)
        return done

    def rehearse(self, now: datetime) -> Round:
        """Say what a round would do; nothing is changed, not even the Lease.

        Raises:
            Failure: something is wrong, not allowed, or does not answer.
        """
        return self._round(now, peek(self.cluster, self.wanted.lease), dry=True)

    def _round(self, now: datetime, memory: str | None, *, dry: bool) -> Round:
        if not self.wanted.hpa:
            knative.check_version(self.cluster, self.wanted.knative)
        seen = look(now, self.wanted, self.schedule)
        for _ in range(_TRIES):
            try:
                return self._attempt(now, memory, seen, dry=dry)
            except (Conflict, Missing):
                continue  # what was read is old: read again
        raise Failure(
            f"Somebody else keeps changing {self.wanted.hpa or self.wanted.service}; try again"
            " later.",
            Exit.AGAIN,
        )

    def _attempt(self, now: datetime, memory: str | None, seen: Seen, *, dry: bool) -> Round:
        """Read, decide and change once.

        Raises:
            Conflict: something was changed meanwhile.
            Missing: something has gone meanwhile.
            Failure: something is wrong, not allowed, or does not answer.
        """
        main, others, batch = self._read()
        samples = Samples(
            floor=main.floor,
            memory=load(memory),
            model=seen.model,
            node=seen.node,
            expected=seen.forecast.high if seen.forecast else None,
            held=main.held,
        )
        decision = decide(now, samples, _spec(self.wanted, self.schedule, main, batch))
        plan = [(main, decision.floor, decision.why)]
        if batch is not None and decision.batch is not None:
            why = f"{decision.floor} online replicas; {decision.why}"
            first = decision.batch < batch.floor
            plan.insert(0 if first else 1, (batch, decision.batch, why))
        plan += [
            (share.target, floor, _why(share, decision.floor))
            for share in others
            if (floor := share.wanted(decision.floor)) is not None
        ]
        changes, complaints = [], [told for told in (seen.blind, seen.unforeseen) if told]
        for each, floor, why in plan:
            if floor == each.floor or each.held is not None:
                continue
            if not dry and (failure := target.change(self.cluster, each, floor, why, now)):
                complaints.append(f"{each.name} has another floor, but no Event says so: {failure}")
            changes.append(Change(each.name, each.floor, floor))
        return Round(main.name, main.floor, decision, seen, tuple(changes), tuple(complaints))

    def _read(self) -> tuple[Target, tuple[Share, ...], Target | None]:
        """What has the floor, what beside it has one, and who gives way."""
        if self.wanted.hpa:
            if self.schedule.pools or self.schedule.batch:
                raise Failure(
                    "[[pool]] and [batch] of the schedule are for a Knative Service: with --hpa,"
                    " leave them out.",
                    Exit.CONFIG,
                )
            return hpa.scaler(self.cluster, self.wanted.hpa), (), None
        found = knative.revisions(self.cluster, self.wanted.service, self.schedule.pools)
        batch = None
        if self.schedule.batch:
            batch = knative.revisions(self.cluster, self.schedule.batch.service).main
        return found.main, found.others, batch


def look(now: datetime, wanted: Wanted, schedule: Schedule) -> Seen:
    """What there is and what is to come; a Prometheus that does not answer is no reason to stop."""
    if (prometheus := wanted.prometheus) is None:
        return Seen()
    forecast = blind = unforeseen = None
    try:
        model = signals.model(prometheus, wanted.matchers)
        node = signals.node(prometheus, wanted.node_matchers)
    except Failure as failure:
        return Seen(blind=str(failure))
    try:
        points = signals.history(prometheus, wanted.matchers, now, HISTORY_WEEKS)
        known = Forecaster(points, schedule.timezone, schedule.lead, schedule.events)
        forecast = known.forecast(now)
    except Failure as failure:
        unforeseen = f"There is no forecast. {failure}"
    if model is None:
        matchers = f" with {wanted.matchers}" if wanted.matchers else ""
        blind = (
            f"Prometheus at {prometheus.url} knows no replica{matchers}: see that it scrapes the"
            " pods, and use --selector."
        )
    return Seen(model, node, forecast, blind, unforeseen)


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


def _why(share: Share, main: int) -> str:
    if share.floor is not None:
        return "the floor of its pool"
    if share.percent:
        return f"{share.percent:g}% of the traffic, for which {main} replicas are wanted"
    return "it has no traffic any more"
