"""Why a plan is as it is: each setting against its neighbours, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.planning.kpa.settings import ScalingMetric
from keepalive.planning.pictures.style import seconds
from keepalive.planning.search.choice import Cover

if TYPE_CHECKING:
    from keepalive.planning.search.choice import PlanChoice
    from keepalive.planning.search.trial import Trial, Trials
    from keepalive.prescaler.schedule import Schedule

_FIELDS = (
    "batch",
    "metric",
    "use",
    "cover",
    "floor",
    "window_s",
    "delay_s",
    "activation",
    "lead_s",
)
_COVERS = {
    Cover.NONE: "no windows",
    Cover.RAMPS: "windows over steep climbs only",
    Cover.DAY: "windows over the whole day",
}


def explain(best: Trial, trials: Trials) -> list[str]:
    """Sentences, one for each setting."""
    if best.choice is None:
        raise TypeError("a naive trial has nothing to explain")
    choice, service = best.choice, trials.given.service
    capacity = service.up_to(choice.batch).most_per_second
    full = service.times[choice.batch - 1]
    planned = trials.schedule(choice)
    words = {
        "batch": f"Batches up to {choice.batch}: a full one takes {seconds(full)}, so that a"
        f" replica can do {capacity:.1f} requests/s.",
        "metric": _metric(choice),
        "use": f"Each replica is to have {choice.use:.0%} of that, {choice.rate(service):.1f}"
        " requests/s; the rest is for chance and for the time until more are ready.",
        "cover": _cover(choice, planned, trials),
        "floor": f"Outside windows the floor is {choice.floor}.",
        "window_s": f"The stable window is {choice.window_s} s.",
        "delay_s": f"Scaling down is held back for {choice.delay_s} s.",
        "activation": f"With any load there are at least {choice.activation or 1}.",
        "lead_s": f"Floors are raised {choice.lead_s // 60} min before: the worst cold start takes"
        f" {seconds(trials.cold_s())}, and the pre-scaler looks once a minute.",
    }
    if choice.floor:
        del words["activation"]
    if not planned.windows:
        del words["lead_s"]
    found = [
        " ".join([words[name], *_others(best, trials, name)]) for name in _FIELDS if name in words
    ]
    most = int(best.outcome.series.wanted.max())
    found.append(f"max-scale {choice.most} is the ceiling that was given; {most} were wanted.")
    return found


def _metric(choice: PlanChoice) -> str:
    if choice.metric is ScalingMetric.RPS:
        return (
            "Requests per second are counted: they follow the load alone, while concurrency also"
            " follows how slow the replicas are, and swings."
        )
    return "Requests at once are counted: they also see requests that take longer."


def _cover(choice: PlanChoice, planned: Schedule, trials: Trials) -> str:
    if not planned.windows:
        return "The schedule has no windows: the autoscaler and the floor are enough."
    react = trials.cold_s() + choice.window_s / 2 + 4
    floors = sorted({window.floor for window in planned.windows})
    upto = f"{floors[0]} to {floors[-1]}" if len(floors) > 1 else str(floors[0])
    return (
        f"The schedule raises the floor to {upto} ({_COVERS[choice.cover]}): new replicas come"
        f" {react:.0f} s after the load, and some of it climbs faster."
    )


def _others(best: Trial, trials: Trials, name: str) -> list[str]:
    """What the tried choices that differ in this setting alone came to."""
    own = best.choice
    found = []
    for choice, trial in trials.done.items():
        same = all(getattr(choice, each) == getattr(own, each) for each in _FIELDS if each != name)
        if not same or choice == own:
            continue
        found.append((choice, f"{_named(choice, name)}: {_against(trial, best)}."))
    found.sort(key=lambda each: getattr(each[0], name))
    return [text for _, text in found]


def _named(choice: PlanChoice, name: str) -> str:
    value = getattr(choice, name)
    if name == "use":
        return f"With {value:.0%}"
    if name == "cover":
        return f"With {_COVERS[value]}"
    if name == "metric":
        return f"With {value}"
    if name == "lead_s":
        return f"With {value // 60} min"
    return f"With {value}" + (" s" if name.endswith("_s") else "")


def _against(trial: Trial, best: Trial) -> str:
    if not trial.kept:
        wrong = []
        if trial.worst_p99_s > trial.objective.p99_s:
            wrong.append(f"p99 {seconds(trial.worst_p99_s)}")
        if trial.lost > trial.objective.lost:
            wrong.append(f"{trial.outcome.lost:,} lost")
        return f"misses it ({', '.join(wrong)})"
    more = trial.outcome.gpu_hours / best.outcome.gpu_hours - 1
    if abs(more) < 0.001:
        return "costs the same"
    return f"{abs(more):.1%} {'more' if more > 0 else 'fewer'} GPU-hours"
