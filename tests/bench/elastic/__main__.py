"""`make bench-elastic`: what a plan costs and keeps, against what people choose without looking.

Simulations only: nothing is measured but how long they take. The planned row is what the search
finds; the others are those of `ember plan`, and for the tide the 8 static replicas of its case.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from keepalive.planning.pictures import search as plotted
from keepalive.planning.pictures import simulation as picture
from keepalive.planning.pictures.style import seconds
from keepalive.planning.search.descent import search
from keepalive.planning.search.explain import explain
from keepalive.planning.search.naive import naive
from keepalive.planning.search.trial import Trial
from keepalive.planning.simulation import scaling
from keepalive.planning.simulation.run import Scenario, simulate
from keepalive.planning.traces import shapes
from tests.bench.elastic import cases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keepalive.planning.simulation.outcome import SimulationOutcome

_QUEUE = 320
PARTS = ("flash", "tide", "week", "surge", "clusters", "speed")


def main() -> int:
    """Print the tables; 1 when an objective is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.elastic", description=__doc__)
    parser.add_argument("--pictures", type=Path, help="a folder for pictures")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--quick", action="store_true", help="the tide in a quarter of a day")
    options = parser.parse_args()
    pictures, only = options.pictures, options.only
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    kept = [
        compared(case, pictures and pictures / name)
        for name, case in (
            ("flash", cases.FLASH),
            ("tide", cases.QUICK_TIDE if options.quick else cases.TIDE),
        )
        if only in {None, name}
    ]
    if only in {None, "week"}:
        kept.append(weekdays(pictures))
    if only in {None, "surge"}:
        kept.append(surge())
    if only in {None, "clusters"}:
        clusters()
    if only in {None, "speed"}:
        speed()
    return 0 if all(kept) else 1


def compared(case: cases.Case, pictures: Path | None) -> bool:
    """Search, and print the plan beside the naive choices."""
    began = time.process_time()
    trials = case.trials()
    best, proven = search(trials, case.bounds, lambda _: None)
    others = list(naive(trials, case.bounds.most))
    if case.static:
        rule = partial(scaling.StaticScaling, case.static, _QUEUE)
        outcome = trials.run(case.service, rule)
        others[0] = Trial(f"static, {case.static}", outcome, case.objective)
    cost = best.outcome.gpu_hours / others[0].outcome.gpu_hours
    print(f"\n### {case.name}\n")
    print(table([best, *others], others[0].outcome.gpu_hours))
    print(
        f"\np99 of the worst five minutes at most {seconds(case.objective.p99_s)} and nothing lost:"
        f" {'kept, also with other chances' if proven else 'MISSED'}. GPU-hours ÷ static:"
        f" {cost:.2f} (goal ≤ {case.most_cost}). {len(trials.done)} choices tried,"
        f" {time.process_time() - began:.0f} s of one core.\n"
    )
    for sentence in explain(best, trials):
        print(f"- {sentence}")
    if pictures:
        tried = list(trials.done.values())
        plotted.draw(tried, others, best, pictures.with_name(f"elastic-{pictures.name}-cost.png"))
        path = pictures.with_name(f"elastic-{pictures.name}.png")
        title = f"Planned: {case.name}"
        picture.draw(best.outcome, path, title, case.objective.p99_s)
        naive_path = pictures.with_name(f"elastic-{pictures.name}-naive.png")
        picture.draw(
            others[2].outcome, naive_path, f"min-scale 1: {case.name}", case.objective.p99_s
        )
    return proven and cost <= case.most_cost


def table(trials: Sequence[Trial], static: float) -> str:
    """One row each, as Markdown."""
    names = "settings", "GPU-hours", "÷ static", "p50", "p99", "p99, worst 5 min", "lost"
    lines = [
        f"| {' | '.join(names)} | met a cold start | objective |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for trial in trials:
        outcome = trial.outcome
        lines.append(
            f"| {trial.name} | {outcome.gpu_hours:.1f} | {outcome.gpu_hours / static:.2f}"
            f" | {seconds(outcome.latency(0.5))} | {seconds(outcome.latency(0.99))}"
            f" | {seconds(trial.worst_p99_s)} | {outcome.lost:,} | {outcome.met_cold:,}"
            f" | {'kept' if trial.kept else 'missed'} |"
        )
    return "\n".join(lines)


def weekdays(pictures: Path | None) -> bool:
    """Print a week with one replica on working days against always and never one."""
    outcomes: dict[str, SimulationOutcome] = {
        "floor 1 on working days, 0 at weekends": cases.week(cases.WEEKDAYS, 0),
        "min-scale 1": cases.week(None, 1),
        "min-scale 0": cases.week(None, 0),
    }
    print("\n### a week in the office, floor 1 on working days and 0 at weekends\n")
    print(
        "| settings | GPU-hours | requests on working days that met a cold start | at weekends"
        " | p99 |\n|---|---|---|---|---|"
    )
    for name, outcome in outcomes.items():
        cold = outcome.series.met_cold
        print(
            f"| {name} | {outcome.gpu_hours:.1f} | {cold[: cases.SATURDAY].sum()}"
            f" | {cold[cases.SATURDAY :].sum()} of {outcome.series.came[cases.SATURDAY :].sum()}"
            f" | {seconds(outcome.latency(0.99))} |"
        )
    planned, *_ = outcomes.values()
    if pictures:
        picture.draw(planned, pictures / "elastic-week.png", "A week: floor 1, at weekends 0")
    return int(planned.series.met_cold[: cases.SATURDAY].sum()) == 0


def surge() -> bool:
    """Print what the HPA of qps-hpa makes of a surge, by its target."""
    print("\n### 200 to 600 requests/s within 90 s, under an HPA\n")
    print(
        "| HPA's target for each replica | GPU-hours | p99, worst 5 min | lost |\n|---|---|---|---|"
    )
    outcomes = {f"{target} requests/s": cases.surge(target) for target in (20, 25, 30, 35)}
    outcomes["70 % busy"] = cases.surge(0.7, requests=False)
    for name, outcome in outcomes.items():
        tail = seconds(outcome.worst(0.99))
        print(f"| {name} | {outcome.gpu_hours:.1f} | {tail} | {outcome.lost:,} |")
    first = outcomes["20 requests/s"]
    return first.worst(0.99) <= 0.8 and first.lost == 0


def clusters() -> None:
    """Print what the loss of one of two clusters costs, by floor and by how soon it is noticed."""
    print("\n### 200 requests/s on two clusters, of which one is gone\n")
    print("| floor of each | noticed after | lost | p99, worst minute | recovered after |")
    print("|---|---|---|---|---|")
    for floor in (4, 6, 8):
        for noticed_s in (10, 60, 300):
            found = cases.drill(floor, noticed_s)
            print(
                f"| {floor} | {noticed_s} s | {found.lost:,} | {seconds(found.most_p99_s)}"
                f" | {found.recovered_s} s |"
            )


def speed() -> None:
    """Print how long a day takes, with the shortcut and with every second simulated."""
    print("\n### how long a day with a peak of 800 requests/s takes\n")
    print("| simulated | requests | seconds of one core | p99 |\n|---|---|---|---|")
    for name, exact in (("as by default", False), ("every second", True)):
        case = cases.FLASH
        settings = case.choice.settings(case.service)
        scenario = Scenario(
            shapes.tide(50, 800),
            case.service,
            cases.COLD_STARTS,
            partial(scaling.KnativeScaling, settings, 8, 12),
            exact=exact,
        )
        began = time.process_time()
        outcome = simulate(scenario)
        took = time.process_time() - began
        print(f"| {name} | {outcome.requests:,} | {took:.1f} | {seconds(outcome.latency(0.99))} |")


if __name__ == "__main__":
    sys.exit(main())
