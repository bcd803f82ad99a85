"""The picture of a search: cost against tail latency; it alone needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepalive.planning.pictures.style import (
    AMBER,
    BLUE,
    INK,
    RED,
    latency_axis,
    objective_line,
    style,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from keepalive.planning.search.trial import Trial


def frontier(trials: Iterable[Trial]) -> list[Trial]:
    """Those that nothing beats in both cost and tail latency, the cheapest first."""
    found: list[Trial] = []
    for trial in sorted(trials, key=lambda each: (each.outcome.gpu_hours, each.worst_p99_s)):
        if not found or trial.worst_p99_s < found[-1].worst_p99_s:
            found.append(trial)
    return found


def draw(tried: Sequence[Trial], naive: Sequence[Trial], best: Trial, path: Path) -> None:
    """Draw all trials, the frontier and the naive choices.

    Raises:
        ModuleNotFoundError: matplotlib is not there.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 6), layout="constrained")
    axes = figure.subplots()
    style(axes)
    clean, losing = _parted(tried)
    axes.scatter(*_points(clean), s=26, color=BLUE, alpha=0.55, lw=0, label="tried")
    if losing:
        axes.scatter(*_points(losing), s=26, color=AMBER, lw=0, label="tried, lost requests")
    edge = frontier(clean)
    axes.step(*_points(edge), where="post", color=BLUE, lw=1.4, label="nothing tried is better")
    axes.scatter(*_points(naive), s=60, marker="D", color=RED, zorder=3, label="naive")
    axes.scatter(*_points([best]), s=190, marker="*", color=INK, zorder=4, label="planned")
    latency_axis(axes)
    _widened(axes, [*tried, *naive])
    for near in _together(naive, axes):
        _note(axes, near[0], "\n".join(_told(trial) for trial in near), RED)
    _note(axes, best, f"planned: {best.outcome.gpu_hours:.0f} GPU-hours", INK, below=True)
    objective_line(axes, best.objective.p99_s, lift=4, fontsize=9)
    axes.grid(axis="x", color="#e6e9ec", linewidth=0.8)
    axes.set_xlabel("GPU-hours", color=INK)
    axes.set_ylabel("p99 of the worst five minutes", color=INK)
    axes.set_title(
        "Cost against tail latency", loc="left", fontsize=14, fontweight="bold", color=INK
    )
    axes.legend(loc="upper right", frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)


def _parted(trials: Iterable[Trial]) -> tuple[list[Trial], list[Trial]]:
    clean: list[Trial] = []
    losing: list[Trial] = []
    for trial in trials:
        (losing if trial.lost > trial.objective.lost else clean).append(trial)
    return clean, losing


def _points(trials: Sequence[Trial]) -> tuple[list[float], list[float]]:
    return [each.outcome.gpu_hours for each in trials], [each.worst_p99_s for each in trials]


def _widened(axes: Any, trials: Sequence[Trial]) -> None:
    hours, latencies = _points(trials)
    span = max(hours) - min(hours) or 1.0
    axes.set_xlim(min(hours) - 0.06 * span, max(hours) + 0.12 * span)
    axes.set_ylim(min(latencies) * 0.7, max(latencies) * 2)


def _told(trial: Trial) -> str:
    lost = trial.outcome.lost
    return f"{trial.name}, {lost:,} lost" if lost else trial.name


def _together(trials: Sequence[Trial], axes: Any) -> list[list[Trial]]:
    """Groups of trials so close that their names would cover each other."""
    groups: list[list[Trial]] = []
    for trial in trials:
        at = axes.transData.transform((trial.outcome.gpu_hours, trial.worst_p99_s))
        for group in groups:
            first = group[0]
            other = axes.transData.transform((first.outcome.gpu_hours, first.worst_p99_s))
            if abs(at[1] - other[1]) < 14 and abs(at[0] - other[0]) < 160:
                group.append(trial)
                break
        else:
            groups.append([trial])
    return groups


def _note(axes: Any, trial: Trial, text: str, colour: str, *, below: bool = False) -> None:
    left, right = axes.get_xlim()
    late = trial.outcome.gpu_hours > left + 0.7 * (right - left)
    axes.annotate(
        text,
        (trial.outcome.gpu_hours, trial.worst_p99_s),
        xytext=(-9 if late else 9, -8 if below else 6),
        textcoords="offset points",
        ha="right" if late else "left",
        va="top" if below else "bottom",
        fontsize=9,
        color=colour,
    )
