"""Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) as a function without state.

Written from its documentation: one metric with a target per replica, replicas that are not ready or
have no figure yet, and the behaviour of each direction (tolerance, stabilisation, policies).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SYNC_S = 15
"""Seconds between two decisions."""


class PolicyUnit(StrEnum):
    """What a policy counts in."""

    PODS = "Pods"
    PERCENT = "Percent"


class PolicySelect(StrEnum):
    """Which of several policies counts."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """How much may change within a time.

    Attributes:
        unit: what `value` counts.
        value: how many pods, or per cent of those at the start of the time.
        period_s: the time.
    """

    unit: PolicyUnit
    value: int
    period_s: int


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """The behaviour of one direction.

    Attributes:
        stabilisation_s: how long what was recommended still counts.
        policies: how much may change.
        select: which policy counts: the one that allows most, least, or none at all.
        tolerance: by which part the metric may miss the target before anything happens.
    """

    stabilisation_s: int
    policies: tuple[ScalingPolicy, ...]
    select: PolicySelect = PolicySelect.MAX
    tolerance: float = 0.1


SCALE_UP = ScalingRules(
    0, (ScalingPolicy(PolicyUnit.PODS, 4, 15), ScalingPolicy(PolicyUnit.PERCENT, 100, 15))
)
"""The default for scaling up."""
SCALE_DOWN = ScalingRules(300, (ScalingPolicy(PolicyUnit.PERCENT, 100, 15),))
"""The default for scaling down."""


@dataclass(frozen=True, slots=True)
class HpaSpec:
    """What is asked of it.

    Attributes:
        target: of the metric, as the average of the replicas.
        max_replicas: replicas.
        min_replicas: replicas.
        scale_up: the behaviour when scaling up.
        scale_down: the behaviour when scaling down.
    """

    target: float
    max_replicas: int
    min_replicas: int = 1
    scale_up: ScalingRules = SCALE_UP
    scale_down: ScalingRules = SCALE_DOWN


@dataclass(frozen=True, slots=True)
class HpaObservation:
    """What is seen at one time.

    Attributes:
        now: seconds.
        replicas: what the workload is set to.
        usage: the metric of each replica that is ready.
        unready: replicas that are not ready yet.
        missing: replicas that are ready but have no figure.
    """

    now: float
    replicas: int
    usage: Sequence[float]
    unready: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True)
class HpaState:
    """What one decision leaves to the next.

    Attributes:
        recommended: (seconds, replicas) before the behaviour was applied.
        changes: (seconds, replicas more) that were applied; below 0 for fewer.
    """

    recommended: tuple[tuple[float, int], ...] = ()
    changes: tuple[tuple[float, int], ...] = ()


@dataclass(frozen=True, slots=True)
class HpaDecision:
    """What follows.

    Attributes:
        replicas: what the workload is to be set to.
        state: for the next decision.
    """

    replicas: int
    state: HpaState = field(default_factory=HpaState)


def decide(spec: HpaSpec, observed: HpaObservation, state: HpaState) -> HpaDecision:
    """Decide once; a workload that was set to 0 stays there."""
    now, current = observed.now, observed.replicas
    if current == 0:
        return HpaDecision(0, state)
    if not spec.min_replicas <= current <= spec.max_replicas:
        replicas = min(max(current, spec.min_replicas), spec.max_replicas)
        recommended = state.recommended
    else:
        wanted = recommend(spec, observed)
        replicas = _bounded(spec, _stabilised(spec, state, now, current, wanted), state, observed)
        recommended = (*_since(state.recommended, now - _longest(spec)), (now, wanted))
    changes = _since(state.changes, now - _longest(spec))
    if replicas != current:
        changes = (*changes, (now, replicas - current))
    return HpaDecision(replicas, HpaState(recommended, changes))


def recommend(spec: HpaSpec, observed: HpaObservation) -> int:
    """The replicas that bring the average of the metric to its target.

    Replicas without a figure count as idle when it would scale up and as just right when it would
    scale down, those that are not ready as idle; neither turns the direction round.
    """
    usage = list(observed.usage)
    current = observed.replicas
    if not usage:
        return current
    ratio = _ratio(spec, usage)
    rising = ratio > 1
    if not observed.missing and not (rising and observed.unready):
        return current if _tolerated(spec, ratio) else math.ceil(ratio * len(usage) - 1e-9)
    usage += [0.0 if rising else spec.target] * observed.missing
    if rising:
        usage += [0.0] * observed.unready
    then = _ratio(spec, usage)
    if _tolerated(spec, then) or (then > 1) != rising:
        return current
    wanted = math.ceil(then * len(usage) - 1e-9)
    return max(wanted, current) if rising else min(wanted, current)


def _ratio(spec: HpaSpec, usage: Sequence[float]) -> float:
    return sum(usage) / len(usage) / spec.target


def _tolerated(spec: HpaSpec, ratio: float) -> bool:
    return -spec.scale_down.tolerance <= ratio - 1 <= spec.scale_up.tolerance


def _stabilised(spec: HpaSpec, state: HpaState, now: float, current: int, wanted: int) -> int:
    """Between the lowest recent recommendation for going up and the highest for going down."""
    up = [n for _, n in _since(state.recommended, now - spec.scale_up.stabilisation_s)]
    down = [n for _, n in _since(state.recommended, now - spec.scale_down.stabilisation_s)]
    return min(max(current, min(wanted, *up, wanted)), max(wanted, *down, wanted))


def _bounded(spec: HpaSpec, wanted: int, state: HpaState, observed: HpaObservation) -> int:
    """Within the policies of its direction, and within minimum and maximum."""
    current, now = observed.replicas, observed.now
    rules = spec.scale_up if wanted > current else spec.scale_down
    if rules.select is PolicySelect.DISABLED:
        return current
    limits = [_limit(policy, state, current, now, up=wanted > current) for policy in rules.policies]
    widest = max if (wanted > current) == (rules.select is PolicySelect.MAX) else min
    if wanted > current:
        return min(wanted, max(widest(limits), current), spec.max_replicas)
    return max(wanted, min(widest(limits), current), spec.min_replicas)


def _limit(policy: ScalingPolicy, state: HpaState, current: int, now: float, *, up: bool) -> int:
    """How far one policy lets it go, from what there was at the start of its time."""
    start = current - sum(change for _, change in _since(state.changes, now - policy.period_s))
    change = policy.value if policy.unit is PolicyUnit.PODS else start * policy.value / 100
    return math.ceil(start + change - 1e-9) if up else int(start - change + 1e-9)


def _since(entries: tuple[tuple[float, int], ...], after: float) -> tuple[tuple[float, int], ...]:
    return tuple(entry for entry in entries if entry[0] > after)


def _longest(spec: HpaSpec) -> float:
    """How long anything is remembered."""
    periods = [
        policy.period_s for rules in (spec.scale_up, spec.scale_down) for policy in rules.policies
    ]
    return max(spec.scale_up.stabilisation_s, spec.scale_down.stabilisation_s, *periods, 0)
