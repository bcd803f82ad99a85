"""Which warm floor to have now: a pure decision from the time, what is seen, and what is wanted.

A floor rises at once to what is needed, before it is needed. It falls slowly: never below the
largest need of the last half hour (`Schedule.release`), and by steps, since a floor that fell too
early costs users a cold start, and one that falls late costs some GPU-minutes. The day's budget and
the ceilings hold against everything; a person's hold stops everything.

A worked example: a replica is meant to have 3 requests at once, the lead time is 12 minutes, and
the floor is 4. There are 6 requests in flight, growing by 0.005 a second, so in 12 minutes 3.6
more: 9.6 requests need 4 replicas. The forecast's upper end is 17, for which 6 are needed, so the
floor rises to 6 now. When that time has passed and 2 would do, the floor stays at 6 for half an
hour; then it falls by a quarter, at least by 1, every five minutes: 5, 4, 3, 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from keepalive.prescaler.diagnose import PoolDiagnosis, PoolState, diagnose

if TYPE_CHECKING:
    from datetime import date

    from keepalive.prescaler.pool import ModelLayer, NodeLayer
    from keepalive.prescaler.schedule import Schedule

_STEP_EVERY = timedelta(minutes=5)
_STEP = 0.25
"""A step down is that share of the floor, and at least one replica."""
_GAP = timedelta(minutes=10)
"""Two rounds that are further apart have not seen what was between them."""
_HOUR = timedelta(hours=1)


class PastNeed(NamedTuple):
    """How many replicas were needed at some time."""

    at: datetime
    floor: int


@dataclass(frozen=True, slots=True)
class FloorMemory:
    """What one decision leaves for the next.

    Attributes:
        past_needs: the needs that no later need has reached, the largest first.
        at: when the last decision was made.
        lowered_at: when the floor last fell.
        day: which day `spent` is of.
        spent_gpu_hours: GPU-hours of floor on that day until `at`.
    """

    past_needs: tuple[PastNeed, ...] = ()
    at: datetime | None = None
    lowered_at: datetime | None = None
    day: date | None = None
    spent_gpu_hours: float = 0.0


@dataclass(frozen=True, slots=True)
class FloorSpec:
    """What is wanted, and of what.

    Attributes:
        schedule: which floors are wanted when, and the limits.
        per_replica: how many requests a replica is meant to have at once.
        gpus: GPUs of one replica.
        batch_gpus: GPUs of one batch replica.
        objective_s: seconds within which 95 % of swaps should be answered; None asks nothing.
        max_floor: the most replicas that the platform allows.
        min_floor: the fewest.
        watching: whether the model layer ought to be seen, so that not seeing it lowers nothing.
    """

    schedule: Schedule
    per_replica: float
    gpus: int = 1
    batch_gpus: int = 1
    objective_s: float | None = None
    max_floor: int | None = None
    min_floor: int = 0
    watching: bool = True


@dataclass(frozen=True, slots=True)
class FloorSamples:
    """What is seen.

    Attributes:
        floor: the floor as it is.
        memory: what the last decision left.
        model: what replicas show; None when nothing is known.
        node: what GPUs show; None when nothing is known.
        expected: requests at once that the forecast expects within the lead time, at the upper end
            of its band; None when there is none.
        held: why a person has stopped changes; None when nobody has.
        rollout: whether a rollout is under way: nothing is lowered then, as its old revision has to
            be there whole until it is known how it ends.
        moving: percent of the traffic that will move to replicas that are not ready yet; those of
            now stay until it has.
    """

    floor: int
    memory: FloorMemory = FloorMemory()
    model: ModelLayer | None = None
    node: NodeLayer | None = None
    expected: float | None = None
    held: str | None = None
    rollout: bool = False
    moving: float = 0.0


@dataclass(frozen=True, slots=True)
class FloorDecision:
    """What to do.

    Attributes:
        floor: the floor to have.
        need: replicas that would be right without limits and slowness.
        why: in words.
        finding: what is the matter with the pool.
        memory: what the next decision needs to know.
        batch: the floor that is left to the batch replicas; None where there are none, or nothing
            may be changed.
    """

    floor: int
    need: int
    why: str
    finding: PoolDiagnosis
    memory: FloorMemory
    batch: int | None = None


class _Need(NamedTuple):
    floor: int
    why: str


def decide(now: datetime, samples: FloorSamples, spec: FloorSpec) -> FloorDecision:
    """The floor to have now, which is the one that there is while a person holds it."""
    now = now.astimezone(UTC)
    finding = diagnose(
        samples.model, samples.node, per_replica=spec.per_replica, objective_s=spec.objective_s
    )
    need = _need(now, samples, spec, finding)
    limit = _limit(now, samples, spec)
    memory = _remembered(now, samples, spec, min(need.floor, spec.schedule.max_floor))
    if samples.held is not None:
        return FloorDecision(samples.floor, need.floor, f"held: {samples.held}", finding, memory)
    floor, why = need
    if floor < samples.floor:
        floor, why = _released(now, samples, spec, memory, need)
    if floor > limit.floor:
        floor, why = limit.floor, f"{limit.why}; without it {floor} ({why})"
    if samples.rollout and floor < samples.floor:
        floor, why = samples.floor, f"a rollout is under way; without it {floor} ({why})"
    if floor < samples.floor:
        memory = replace(memory, lowered_at=now)
    return FloorDecision(floor, need.floor, why, finding, memory, _batch(floor, samples, spec))


def _need(now: datetime, samples: FloorSamples, spec: FloorSpec, finding: PoolDiagnosis) -> _Need:
    """The largest of what the schedule, the forecast and the replicas call for."""
    planned = spec.schedule.ahead(now)
    needs = [_Need(planned.floor, planned.why), _Need(spec.min_floor, "the platform's least")]
    if samples.expected is not None and not planned.event:
        replicas = math.ceil(samples.expected / spec.per_replica)
        needs.append(_Need(replicas, f"forecast: {samples.expected:.1f} requests at once"))
    if (model := samples.model) is not None:
        growth = max(0.0, model.slope) * spec.schedule.lead.total_seconds()
        demand = model.in_flight + min(growth, model.in_flight)  # at most as much again
        demand += min(model.turned_away, model.in_flight)  # who is refused comes again
        replicas = math.ceil(demand / spec.per_replica)
        needs.append(
            _Need(replicas, f"{model.in_flight:.1f} requests in flight, soon {demand:.1f}")
        )
        if model.failing:
            why = f"{model.failed:.0%} of swaps fail, {model.broken} replicas are broken"
            needs.append(_Need(samples.floor, f"{why}, so that little load means nothing"))
        if finding.state is PoolState.TOO_FEW:
            more = model.ready + max(1, model.ready // 4)
            needs.append(_Need(more, f"{model.ready} ready replicas are too few"))
    if samples.model is None and spec.watching:
        needs.append(_Need(samples.floor, "nothing is seen of the replicas"))
    return max(needs, key=lambda each: each.floor)  # of equals the first


def _released(
    now: datetime, samples: FloorSamples, spec: FloorSpec, memory: FloorMemory, need: _Need
) -> tuple[int, str]:
    """How far the floor may fall to less than it is."""
    recent = max(peak.floor for peak in memory.past_needs)
    minutes = spec.schedule.release / timedelta(minutes=1)
    if recent >= samples.floor:
        return samples.floor, f"{recent} were needed within {minutes:g} min; now {need.why}"
    if memory.lowered_at is not None and now - memory.lowered_at < _STEP_EVERY:
        return samples.floor, f"it has just been lowered; now {need.why}"
    step = max(1, math.floor(samples.floor * _STEP))
    return max(recent, samples.floor - step), f"not needed for {minutes:g} min; now {need.why}"


def _limit(now: datetime, samples: FloorSamples, spec: FloorSpec) -> _Need:
    """The most that may be had.

    What the schedule's own floor needs until midnight is reserved. The rest of the budget has to
    last, for whatever is above that floor, for as long as a release takes.
    """
    schedule = spec.schedule
    limits = [_Need(schedule.max_floor, f"max_floor is {schedule.max_floor}")]
    if spec.max_floor is not None:
        limits.append(_Need(spec.max_floor, f"the platform allows {spec.max_floor}"))
    if math.isfinite(schedule.gpu_hours_per_day):
        left = schedule.gpu_hours_per_day - _spent(now, samples, spec)
        hours = schedule.hours_left(now)
        spare = left - schedule.floor * spec.gpus * hours
        if spare >= 0:
            spell = min(schedule.release / _HOUR, hours)
            most = schedule.floor + math.floor(spare / (spec.gpus * spell))
        else:
            most = math.floor(max(0.0, left) / (spec.gpus * hours))
        limits.append(_Need(most, f"{max(0.0, left):.1f} GPU-hours are left of the day's"))
    limit = min(limits, key=lambda each: each.floor)
    return _Need(max(limit.floor, spec.min_floor), limit.why)


def _spent(now: datetime, samples: FloorSamples, spec: FloorSpec) -> float:
    """GPU-hours of floor since midnight, as if it had been what it is since the last decision."""
    memory, midnight = samples.memory, spec.schedule.midnight(now)
    if memory.at is None:
        return samples.floor * spec.gpus * ((now - midnight.astimezone(UTC)) / _HOUR)
    since = max(memory.at, midnight.astimezone(UTC))
    before = memory.spent_gpu_hours if memory.day == midnight.date() else 0.0
    return before + samples.floor * spec.gpus * max(0.0, (now - since) / _HOUR)


def _remembered(now: datetime, samples: FloorSamples, spec: FloorSpec, need: int) -> FloorMemory:
    """The memory with this moment in it."""
    memory = samples.memory
    peaks = [peak for peak in memory.past_needs if peak.at > now - spec.schedule.release]
    if memory.at is None or now - memory.at > _GAP:  # what was not seen counts as needed
        peaks = [PastNeed(now, max(need, samples.floor, *(peak.floor for peak in peaks)))]
    while peaks and peaks[-1].floor <= need:
        peaks.pop()
    return FloorMemory(
        past_needs=(*peaks, PastNeed(now, need)),
        at=now if memory.at is None else max(now, memory.at),
        lowered_at=memory.lowered_at,
        day=spec.schedule.midnight(now).date(),
        spent_gpu_hours=_spent(now, samples, spec),
    )


def _batch(floor: int, samples: FloorSamples, spec: FloorSpec) -> int | None:
    """What is left to batch replicas when the online ones have what they need."""
    if (batch := spec.schedule.batch) is None:
        return None
    model = samples.model
    both = floor + math.ceil(floor * samples.moving / 100)
    online = max(both, model.ready + model.warming if model else 0)
    left = batch.gpus - online * spec.gpus
    return max(0, min(batch.floor, left // spec.batch_gpus))
