"""One round of the pre-scaler: read, look, decide, change. All that lasts is in the cluster.

A round takes the Lease, so that two pre-scalers do not decide on each other's halves; and it
changes only what is as it was read, so that even without the Lease nothing is lost. Batch replicas
are given less before online ones are given more, and more only after. What is about to be changed
is written into the Lease first, so that whoever comes next knows which floors are from here.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from keepalive.cluster import hpa, knative, target
from keepalive.cluster.client import Conflict, Missing
from keepalive.cluster.knative import Revisions
from keepalive.cluster.lease import LeaseTaken, peek
from keepalive.cluster.version import check_version
from keepalive.failure import Exit, Failure
from keepalive.prescaler import grant, scale_events
from keepalive.prescaler.decide import FloorSamples, FloorSpec, decide
from keepalive.prescaler.notes import notes
from keepalive.prescaler.observe import Observation, Observer
from keepalive.prescaler.scale_events import Scale, ScaleEvent
from keepalive.prescaler.state import PrescalerState, dump, load

if TYPE_CHECKING:
    from datetime import datetime

    from keepalive.cluster.client import Cluster
    from keepalive.cluster.lease import Lease
    from keepalive.cluster.target import Target
    from keepalive.prescaler.config import PrescalerConfig
    from keepalive.prescaler.decide import FloorDecision
    from keepalive.prescaler.schedule import Schedule

_TRIES = 3


@dataclass(frozen=True, slots=True)
class FloorChange:
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
        notes: what people should know, and may be as they want it.
        events: the latest changes of the scale, whoever made them.
    """

    name: str
    before: int
    decision: FloorDecision
    seen: Observation
    changes: tuple[FloorChange, ...]
    complaints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    events: tuple[ScaleEvent, ...] = ()


class FloorStep(NamedTuple):
    """A floor to have, why, and whether it has to be enough (`Grant.enough`)."""

    target: Target
    floor: int
    why: str
    enough: bool = False


@dataclass(frozen=True, slots=True)
class Prescaler:
    """Does rounds.

    Attributes:
        cluster: to change.
        wanted: what for.
        schedule: which floors are wanted when.
        observer: knows what earlier rounds have read; None for one that knows nothing.
    """

    cluster: Cluster
    wanted: PrescalerConfig
    schedule: Schedule
    observer: Observer | None = None

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
            done, kept = self._round(now, lease.memory, lease)
        except Failure:
            with suppress(Failure, LeaseTaken):
                lease.renew(lease.memory or "", now, release=True)
            raise
        lease.renew(dump(kept), now, release=last)
        return done

    def rehearse(self, now: datetime) -> Round:
        """Say what a round would do; nothing is changed, not even the Lease.

        Raises:
            Failure: something is wrong, not allowed, or does not answer.
        """
        return self._round(now, peek(self.cluster, self.wanted.lease), None)[0]

    def _round(
        self, now: datetime, memory: str | None, lease: Lease | None
    ) -> tuple[Round, PrescalerState]:
        """What came of a round, and what is to be kept; without a Lease nothing is changed."""
        observer = self.observer or Observer(self.wanted)
        if lease is None or not lease.continued:
            observer.forget()
        seen = observer.observe(now, self.schedule)
        for _ in range(_TRIES):
            try:
                return self._attempt(now, load(lease.memory if lease else memory), seen, lease)
            except (Conflict, Missing):
                continue  # what was read is old: read again
        raise Failure(
            f"Somebody else keeps changing {self.wanted.hpa or self.wanted.service}; try again"
            " later.",
            Exit.AGAIN,
        )

    def _attempt(
        self, now: datetime, kept: PrescalerState, seen: Observation, lease: Lease | None
    ) -> tuple[Round, PrescalerState]:
        """Read, decide and change once.

        Raises:
            Conflict: something was changed meanwhile.
            Missing: something has gone meanwhile.
            Taken: the Lease was lost meanwhile.
            Failure: something is wrong, not allowed, or does not answer.
        """
        found, batch = self._read()
        main, others = found.main, found.others
        samples = FloorSamples(
            floor=main.floor,
            memory=kept.memory,
            model=seen.model,
            node=seen.node,
            expected=seen.forecast.high if seen.forecast else None,
            held=main.held,
            rollout=found.rollout,
            moving=sum(share.percent or 0 for share in others if share.start),
        )
        decision = decide(now, samples, _spec(self.wanted, self.schedule, main, batch))
        plan = [FloorStep(main, decision.floor, decision.why)]
        if batch is not None and decision.batch is not None:
            why = f"{decision.floor} online replicas; {decision.why}"
            first = decision.batch < batch.floor
            plan.insert(0 if first else 1, FloorStep(batch, decision.batch, why))
        for share in others:
            own = grant.current(kept.grants, share.target)
            told = grant.floor_beside(share, decision.floor, own, now, self.schedule.lead)
            if told and not (found.rollout and told[0] < share.target.floor):
                plan.append(FloorStep(share.target, *told))
        plan = [one for one in plan if one.floor != one.target.floor and one.target.held is None]
        grants = kept.grants
        for one in plan:
            grants = grant.with_grant(
                grants, one.target, one.floor, one.why, now, enough=one.enough
            )
        complaints = [told for told in (seen.pool_failure, seen.forecast_failure) if told]
        if plan and lease:
            lease.renew(dump(replace(kept, grants=grants)), now, release=False)
            complaints += self._apply(plan, now)
        changes = tuple(FloorChange(one.target.name, one.target.floor, one.floor) for one in plan)
        read = (main, *(share.target for share in others), *([batch] if batch else []))
        left = notes(read, kept.told)
        events = [*kept.events, *scale_events.changes_since(read, kept.scales, kept.grants, now)]
        scales = {one.name: Scale(one.floor, one.replicas) for one in read}
        for target_, floor, why, _ in plan:
            name = target_.name
            scales[name] = Scale(floor, target_.replicas)
            events.append(
                ScaleEvent(now, scale_events.PRESCALER, name, "floor", target_.floor, floor, why)
            )
        done = Round(
            name=main.name,
            before=main.floor,
            decision=decision,
            seen=seen,
            changes=changes,
            complaints=tuple(complaints),
            notes=(*left.values(), *([found.pin] if found.pin else [])),
            events=scale_events.latest(events),
        )
        known = tuple(each.name for each in read if each.name in {*kept.told, *left})
        return done, PrescalerState(decision.memory, grants, known, scales, done.events)

    def _apply(self, plan: list[FloorStep], now: datetime) -> list[str]:
        """Change floors; what comes back says for which there is no Event."""
        silent = []
        for each, floor, why, _ in plan:
            if failure := target.change(self.cluster, each, floor, why, now):
                silent.append(f"{each.name} has another floor, but no Event says so: {failure}")
        return silent

    def _read(self) -> tuple[Revisions, Target | None]:
        """What has the floor and what beside it has one, and who gives way."""
        if self.wanted.hpa:
            if self.schedule.pools or self.schedule.batch:
                raise Failure(
                    "[[pool]] and [batch] of the schedule are for a Knative Service: with --hpa,"
                    " leave them out.",
                    Exit.CONFIG,
                )
            return Revisions(hpa.scaler(self.cluster, self.wanted.hpa), ()), None
        floors = {pool.tag: pool.floor for pool in self.schedule.pools}
        found = knative.revisions(self.cluster, self.wanted.service, floors)
        check_version(self.cluster, found.main.name, self.wanted.knative)
        batch = None
        if self.schedule.batch:
            batch = knative.revisions(self.cluster, self.schedule.batch.service).main
        return found, batch


def _spec(
    wanted: PrescalerConfig, schedule: Schedule, main: Target, batch: Target | None
) -> FloorSpec:
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
    return FloorSpec(
        schedule=schedule if batch else replace(schedule, batch=None),
        per_replica=per_replica,
        gpus=gpus,
        batch_gpus=batch.gpus if batch else 1,
        objective_s=wanted.objective_s,
        most=main.most,
        least=main.least,
        watching=wanted.prometheus is not None,
    )
