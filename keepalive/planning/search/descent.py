"""The search: a coarse grid, then one setting after the other, until nothing gets cheaper.

1. *Batch*: the largest of which two fit into the objective, since who comes last waits for one.
2. *Grid*: every way to cover the load with floors × three uses of a replica.
3. *Descent*: from the best of them, each setting in turn goes down and up its ladder as long as
   each step is better. It ends when a whole round changes nothing, or after `tries` simulations.
4. *Proof*: the best is simulated again with other chances; if it fails once, the next best is
   taken.

Better is: keeps the objective; then, costs fewer GPU-hours; then, has a tail that is shorter by a
tenth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from keepalive.planning.kpa.settings import ScalingMetric
from keepalive.planning.search.choice import Cover, PlanChoice

if TYPE_CHECKING:
    from collections.abc import Callable

    from keepalive.planning.search.trial import Trial, Trials

_PROOFS = 2
_GRID = (0.5, 0.65, 0.8)
_LADDERS: dict[str, tuple[Any, ...]] = {
    "use": (0.3, 0.4, 0.5, 0.57, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95),
    "cover": tuple(Cover),
    "metric": tuple(ScalingMetric),
    "delay_s": (0, 60, 300, 900),
    "window_s": (30, 60, 120),
    "activation": (0, 2, 3, 4),
}
_ORDER = ("use", "cover", "floor", "delay_s", "batch", "metric", "window_s", "activation", "lead_s")
_ENOUGH = 0.002
"""A step has to save that part, so that chance alone moves nothing."""
_QUICKER = 0.9


@dataclass(frozen=True, slots=True)
class Bounds:
    """Within what is searched.

    Attributes:
        least: the lowest floor.
        most: the most replicas.
        tries: the most simulations.
    """

    least: int
    most: int
    tries: int


def search(trials: Trials, bounds: Bounds, report: Callable[[Trial], None]) -> tuple[Trial, bool]:
    """Look for the cheapest choice that keeps the objective.

    Returns:
        The best, or what comes nearest if none keeps the objective; and whether it was kept with
        other chances as well.
    """

    def tried(choice: PlanChoice) -> Trial:
        new = choice not in trials.done
        trial = trials.choice(choice)
        if new:
            report(trial)
        return trial

    first = start(trials, bounds)
    grid = [replace(first, cover=cover, use=use) for cover in Cover for use in _GRID]
    best = min((tried(choice) for choice in grid), key=lambda trial: trial.order)
    moved = True
    while moved:
        moved = False
        for name in _ORDER:
            for step in (-1, 1):
                while choice := neighbour(_chosen(best), name, step, trials=trials, bounds=bounds):
                    if len(trials.done) >= bounds.tries:
                        return _proven(best, trials)
                    trial = tried(choice)
                    if not _better(trial, best):
                        break
                    best, moved = trial, True
    return _proven(best, trials)


def start(trials: Trials, bounds: Bounds) -> PlanChoice:
    """From where the search goes."""
    service = trials.given.service
    fitting = [
        size
        for size in _batches(service.batch)
        if 2 * service.times[size - 1] <= trials.objective.p99_s
    ]
    return PlanChoice(
        batch=max(fitting, default=1),
        metric=ScalingMetric.RPS,
        use=0.65,
        cover=Cover.RAMPS,
        floor=max(1, bounds.least),
        most=bounds.most,
        window_s=60,
        delay_s=0,
        activation=0,
        lead_s=_lead(trials),
    )


def neighbour(
    choice: PlanChoice, name: str, step: int, *, trials: Trials, bounds: Bounds
) -> PlanChoice | None:
    """The choice that differs in one setting by one step; None at the end of its ladder."""
    ladder = _ladder(name, trials, bounds)
    if (name == "activation" and choice.floor) or (name == "lead_s" and choice.cover is Cover.NONE):
        return None
    at = ladder.index(getattr(choice, name)) + step
    return replace(choice, **{name: ladder[at]}) if 0 <= at < len(ladder) else None


def _ladder(name: str, trials: Trials, bounds: Bounds) -> tuple[Any, ...]:
    if name == "floor":
        return tuple(range(bounds.least, bounds.most + 1))
    if name == "batch":
        return _batches(trials.given.service.batch)
    if name == "lead_s":
        return (_lead(trials), 2 * _lead(trials))
    return _LADDERS[name]


def _batches(largest: int) -> tuple[int, ...]:
    powers = [2**n for n in range(int(math.log2(largest)) + 1)]
    return tuple(powers) if powers[-1] == largest else (*powers, largest)


def _lead(trials: Trials) -> int:
    """Whole minutes: a cold start at its worst, and one minute until the pre-scaler looks."""
    return 60 * (math.ceil(trials.cold_s() / 60) + 1)


def _better(trial: Trial, best: Trial) -> bool:
    if not (trial.kept and best.kept):
        return trial.order < best.order
    cost = trial.outcome.gpu_hours / best.outcome.gpu_hours
    quicker = trial.worst_p99_s < best.worst_p99_s * _QUICKER
    return cost < 1 - _ENOUGH or (cost < 1 + _ENOUGH and quicker)


def _proven(best: Trial, trials: Trials) -> tuple[Trial, bool]:
    """The best that is kept with other chances, too; if there is none, the best."""
    ranked = sorted(trials.done.values(), key=lambda trial: trial.order)
    for trial in (best, *ranked):
        if trial.kept and all(
            trials.choice(_chosen(trial), seed).kept for seed in range(1, _PROOFS + 1)
        ):
            return trial, True
    return best, False


def _chosen(trial: Trial) -> PlanChoice:
    if trial.choice is None:
        raise TypeError("a naive trial has no choice")
    return trial.choice
