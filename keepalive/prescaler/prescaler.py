"""One round of the pre-scaler: observe, read, decide, change. What lasts is in the cluster.

A round takes the Lease, so that two pre-scalers do not decide on each other's halves; and it
changes only what is as it was read, so that even without the Lease nothing is lost. Batch replicas
are given less before online ones are given more, and more only after. What is about to be changed
is written into the Lease first, so that whoever comes next knows which floors are from here.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keepalive.cluster import hpa, knative
from keepalive.cluster.client import Conflict, Missing
from keepalive.cluster.knative import Revisions
from keepalive.cluster.lease import LeaseTaken, peek
from keepalive.cluster.target import change
from keepalive.cluster.version import check_version
from keepalive.failure import Exit, Failure
from keepalive.prescaler.decide import FloorSamples, FloorSpec, decide
from keepalive.prescaler.grant import FloorStep, current, step_beside, with_grant
from keepalive.prescaler.notes import notes
from keepalive.prescaler.observe import Observation, PoolObserver
from keepalive.prescaler.scale_events import (
    PRESCALER,
    Scale,
    ScaleEvent,
    changes_since,
    latest,
)
from keepalive.prescaler.state import PrescalerState, dump, load

if TYPE_CHECKING:
    from datetime import datetime

    from keepalive.cluster.client import Cluster
    from keepalive.cluster.lease import Lease
    from keepalive.cluster.target import Target
    from keepalive.prescaler.config import PrescalerConfig
    from keepalive.prescaler.decide import FloorDecision
    from keepalive.prescaler.grant import Grants
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
        observation: what it was decided on.
        changes: what was changed, in this order.
        complaints: what went wrong without stopping it.
        notes: what people should know, and may be as they want it.
        events: the latest changes of the scale, whoever made them.
    """

    name: str
    before: int
    decision: FloorDecision
    observation: Observation
    changes: tuple[FloorChange, ...]
    complaints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    events: tuple[ScaleEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class Prescaler:
    """Does rounds.

    Attributes:
        cluster: to change.
        config: what it is asked to do.
        schedule: which floors are wanted when.
        observer: knows what earlier rounds have read; None for one that knows nothing.
    """

    cluster: Cluster
    config: PrescalerConfig
    schedule: Schedule
    observer: PoolObserver | None = None

    def once(self, now: datetime, lease: Lease, *, last: bool = True) -> Round:
        """Do a round under a Lease, and keep with it what is to be remembered.

        Args:
            now: the time.
            lease: that is ours.
            last: whether to let it go afterwards; a round that fails lets it go.

        Raises:
            LeaseTaken: the Lease was lost meanwhile.
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
        return self._round(now, peek(self.cluster, self.config.lease), None)[0]

    def _round(
        self, now: datetime, memory: str | None, lease: Lease | None
    ) -> tuple[Round, PrescalerState]:
        """What came of a round, and what is to be kept; without a Lease nothing is changed."""
        observer = self.observer or PoolObserver(self.config)
        if lease is None or not lease.continued:
            observer.forget()
        observation = observer.observe(now, self.schedule)
        for _ in range(_TRIES):
            state = load(lease.memory if lease else memory)
            try:
                return self._attempt(now, state, observation, lease)
            except (Conflict, Missing):
                continue  # what was read is old: read again
        raise Failure(
            f"Somebody else keeps changing {self.config.hpa or self.config.service}; try again"
            " later.",
            Exit.AGAIN,
        )

    def _attempt(
        self, now: datetime, state: PrescalerState, observation: Observation, lease: Lease | None
    ) -> tuple[Round, PrescalerState]:
        """Read, decide and change once.

        Raises:
            Conflict: something was changed meanwhile.
            Missing: something has gone meanwhile.
            LeaseTaken: the Lease was lost meanwhile.
            Failure: something is wrong, not allowed, or does not answer.
        """
        found, batch = self._read()
        main, others = found.main, found.others
        samples = FloorSamples(
            floor=main.floor,
            memory=state.memory,
            model=observation.model,
            node=observation.node,
            expected=observation.forecast.high if observation.forecast else None,
            held=main.held,
            rollout=found.rollout,
            moving=sum(share.percent or 0 for share in others if share.start),
        )
        decision = decide(now, samples, _spec(self.config, self.schedule, main, batch))
        steps = self._steps(now, state.grants, decision, found, batch)
        grants = state.grants
        for step in steps:
            grants = with_grant(grants, step, now)
        failures = (observation.pool_failure, observation.forecast_failure)
        complaints = [failure for failure in failures if failure]
        if steps and lease:
            lease.renew(dump(replace(state, grants=grants)), now, release=False)
            complaints += self._apply(steps, now)
        targets = (main, *(share.target for share in others), *([batch] if batch else []))
        leftovers = notes(targets, state.noted)
        events, scales = _recorded(now, targets, steps, state)
        done = Round(
            name=main.name,
            before=main.floor,
            decision=decision,
            observation=observation,
            changes=tuple(
                FloorChange(step.target.name, step.target.floor, step.floor) for step in steps
            ),
            complaints=tuple(complaints),
            notes=(*leftovers.values(), *([found.pin] if found.pin else [])),
            events=events,
        )
        noted = tuple(one.name for one in targets if one.name in {*state.noted, *leftovers})
        return done, PrescalerState(decision.memory, grants, noted, scales, events)

    def _steps(
        self,
        now: datetime,
        grants: Grants,
        decision: FloorDecision,
        found: Revisions,
        batch: Target | None,
    ) -> list[FloorStep]:
        """The floors to change, in this order: batch replicas give way first, and get back last."""
        steps = [FloorStep(found.main, decision.floor, decision.why)]
        if batch is not None and decision.batch is not None:
            why = f"{decision.floor} online replicas; {decision.why}"
            gives_way = decision.batch < batch.floor
            steps.insert(0 if gives_way else 1, FloorStep(batch, decision.batch, why))
        for share in found.others:
            grant = current(grants, share.target)
            step = step_beside(share, decision.floor, grant, now, self.schedule.lead)
            if step and not (found.rollout and step.floor < share.target.floor):
                steps.append(step)
        return [step for step in steps if step.floor != step.target.floor and not step.target.held]

    def _apply(self, steps: list[FloorStep], now: datetime) -> list[str]:
        """Change floors, and return complaints about those of which there is no Event."""
        complaints = []
        for step in steps:
            if failure := change(self.cluster, step.target, step.floor, step.why, now):
                name = step.target.name
                complaints.append(f"{name} has another floor, but no Event says so: {failure}")
        return complaints

    def _read(self) -> tuple[Revisions, Target | None]:
        """The Revisions, or the autoscaler, with floors, and the batch Revision that gives way."""
        if self.config.hpa:
            if self.schedule.pools or self.schedule.batch:
                raise Failure(
                    "[[pool]] and [batch] of the schedule are for a Knative Service: with --hpa,"
                    " leave them out.",
                    Exit.CONFIG,
                )
            return Revisions(hpa.scaler(self.cluster, self.config.hpa), ()), None
        floors = {pool.tag: pool.floor for pool in self.schedule.pools}
        found = knative.revisions(self.cluster, self.config.service, floors)
        check_version(self.cluster, found.main.name, self.config.knative)
        batch = None
        if self.schedule.batch:
            batch = knative.revisions(self.cluster, self.schedule.batch.service).main
        return found, batch


def _recorded(
    now: datetime, targets: tuple[Target, ...], steps: list[FloorStep], state: PrescalerState
) -> tuple[tuple[ScaleEvent, ...], dict[str, Scale]]:
    """The latest changes of the scale with those of this round, and how each target is now."""
    events = [*state.events, *changes_since(targets, state.scales, state.grants, now)]
    scales = {target.name: Scale(target.floor, target.replicas) for target in targets}
    for target, floor, why, _ in steps:
        scales[target.name] = Scale(floor, target.replicas)
        events.append(ScaleEvent(now, PRESCALER, target.name, "floor", target.floor, floor, why))
    return latest(events), scales


def _spec(
    config: PrescalerConfig, schedule: Schedule, main: Target, batch: Target | None
) -> FloorSpec:
    per_replica = config.per_replica or main.per_replica
    if per_replica is None:
        raise Failure(
            f"The autoscaler of {main.name} does not reckon in requests at once, so say how many a"
            " replica is meant to have: --per-replica 3",
            Exit.CONFIG,
        )
    gpus = config.gpus or main.gpus
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
        objective_s=config.objective_s,
        max_floor=main.max_floor,
        min_floor=main.min_floor,
        watching=config.prometheus is not None,
    )
