"""The picture of a simulation, for people who decide; it alone needs matplotlib."""

from __future__ import annotations

import html
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from keepalive.planning.pictures.style import (
    AMBER,
    BLUE,
    GREY,
    INK,
    RED,
    latency_axis,
    objective_line,
    seconds,
    style,
)
from keepalive.planning.simulation.outcome import WINDOW_S

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from keepalive.planning.simulation.outcome import SimulationOutcome

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_PIXELS = 1440
"""Points that a line needs at most."""


def draw(
    outcome: SimulationOutcome, path: Path, title: str, objective_s: float | None = None
) -> None:
    """Draw traffic, replicas, latency and lost requests over time, with the figures above.

    Args:
        outcome: of a simulation.
        path: of the picture; `.html` makes a page that has picture and figures, and any other
            ending says the format.
        title: of the picture.
        objective_s: what the 99th percentile is to stay below.

    Raises:
        ModuleNotFoundError: matplotlib is not there.
        OSError: the picture cannot be written.
        ValueError: there is no such format.
    """
    figure = _figure(outcome, title, objective_s)
    if path.suffix != ".html":
        figure.savefig(path, dpi=130)
        return
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg")
    svg = drawn.getvalue()
    path.write_text(_page(title, svg[svg.index("<svg") :], summary(outcome)), encoding="utf-8")


def summary(outcome: SimulationOutcome) -> list[tuple[str, str]]:
    """The figures, in words."""
    served = outcome.requests - outcome.lost
    found = [
        ("requests", f"{outcome.requests:,}"),
        ("lost", f"{outcome.lost:,}"),
        ("waited for a cold start", f"{outcome.met_cold:,}"),
        ("p50", seconds(outcome.latency(0.5))),
        ("p99", seconds(outcome.latency(0.99))),
        ("worst five minutes' p99", seconds(outcome.worst(0.99))),
        ("replicas started", f"{outcome.starts:,}"),
        ("most GPUs", f"{outcome.most}"),
        ("GPU-hours", f"{outcome.gpu_hours:.1f}"),
    ]
    if outcome.gpu_price:
        found.append(("cost", f"{outcome.cost:,.2f}"))
        found.append(("cost of a million", f"{outcome.cost / max(served, 1) * 1e6:,.2f}"))
    return found


def _figure(outcome: SimulationOutcome, title: str, objective_s: float | None) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8.4), layout="constrained")
    traffic, replicas, latency, lost = figure.subplots(
        4, 1, sharex=True, height_ratios=(1.1, 1.7, 1.4, 0.6)
    )
    for axes in (traffic, replicas, latency, lost):
        style(axes)
    figure.suptitle(title, x=0.01, ha="left", fontsize=14, fontweight="bold", color=INK)
    words = [f"{name} {value}" for name, value in summary(outcome)]
    half = (len(words) + 1) // 2
    lines = "     ".join(words[:half]), "     ".join(words[half:])
    traffic.set_title("\n".join(lines), loc="left", fontsize=9, color=INK, pad=10)
    series = outcome.series
    hours = _spread(np.arange(len(outcome.rates)) / 3600)
    traffic.fill_between(hours, _spread(outcome.rates), color=GREY, alpha=0.35, linewidth=0)
    traffic.plot(hours, _spread(outcome.rates), color=INK, lw=1)
    traffic.set_ylabel("requests/s", color=INK)
    traffic.set_ylim(0)
    _replicas(replicas, hours, outcome)
    _latency(latency, outcome, objective_s)
    _lost(lost, series.lost)
    _clock(lost, len(outcome.rates))
    figure.align_ylabels()
    return figure


def _replicas(axes: Any, hours: NDArray[np.float64], outcome: SimulationOutcome) -> None:
    series = outcome.series
    ready, there = _spread(series.ready), _spread(series.ready + series.starting)
    shared: dict[str, Any] = {"step": "post", "linewidth": 0}
    axes.fill_between(hours, ready, color=BLUE, alpha=0.55, label="ready", **shared)
    axes.fill_between(hours, ready, there, color=AMBER, alpha=0.9, label="starting", **shared)
    axes.step(hours, _spread(series.wanted), where="post", color=INK, lw=0.9, label="wanted")
    if outcome.floors.any():
        axes.step(
            hours, _spread(outcome.floors), where="post", color=RED, lw=1.4, ls="--", label="floor"
        )
    axes.set_ylabel("replicas", color=INK)
    axes.set_ylim(0, max(1, int(there.max())) * 1.18)
    axes.legend(loc="upper left", ncols=4, frameon=False, fontsize=9)


def _latency(axes: Any, outcome: SimulationOutcome, objective_s: float | None) -> None:
    some = outcome.counts.sum(axis=1) > 0
    at = (np.arange(len(some)) + 0.5)[some] * WINDOW_S / 3600
    for part, colour, name in ((0.99, RED, "p99"), (0.5, BLUE, "p50")):
        axes.plot(at, outcome.by_minute(part)[some], color=colour, lw=1, label=f"{name} by minute")
    if objective_s is not None:
        box = {"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 1}
        objective_line(axes, objective_s, lift=3, fontsize=8.5, bbox=box)
    latency_axis(axes)
    low, high = axes.get_ylim()
    axes.set_ylim(low * 0.8, max(high, (objective_s or 0) * 1.6) * 1.6)
    axes.set_ylabel("latency", color=INK)
    axes.legend(loc="upper left", ncols=2, frameon=False, fontsize=9)


def _lost(axes: Any, lost: NDArray[np.int64]) -> None:
    minutes = np.add.reduceat(lost, np.arange(0, len(lost), 60))
    most = int(minutes.max())
    edges = np.arange(len(minutes) + 1) / 60
    axes.stairs(minutes, edges, fill=True, color=RED, lw=1 if most else 0)
    axes.set_ylabel("lost/min", color=INK)
    axes.set_ylim(0, max(1, most * 1.1))
    axes.set_yticks([0, most] if most else [])
    if not most:
        axes.text(
            0.5, 0.5, "no request was lost", transform=axes.transAxes, ha="center", va="center",
            fontsize=9, color=INK,
        )  # fmt: skip


def _clock(axes: Any, length: int) -> None:
    """Hours of the day below; with days when there are several."""
    hours = length / 3600
    step = next((each for each in (0.25, 1, 2, 3, 6, 12, 24) if hours / each <= 14), 24)
    ticks = np.arange(0, hours + 1e-9, step)
    days = hours > 24

    def words(hour: float) -> str:
        clock = f"{int(hour % 24):02d}:{round(hour % 1 * 60):02d}"
        return f"{_DAYS[int(hour // 24) % 7]} {clock}" if days else clock

    axes.set_xticks(ticks, [words(hour) for hour in ticks])
    axes.set_xlim(0, hours)


def _spread(values: NDArray[Any]) -> NDArray[Any]:
    """Every so manyth value, but of each stretch the largest, so that no peak is lost."""
    stride = max(1, len(values) // _PIXELS)
    return np.maximum.reduceat(values, np.arange(0, len(values), stride))


def _page(title: str, svg: str, figures: Sequence[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><th>{html.escape(name)}<td>{html.escape(value)}" for name, value in figures
    )
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{html.escape(title)}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: {INK}; margin: 2rem auto; max-width: 70rem }}
svg {{ width: 100%; height: auto }}
table {{ border-collapse: collapse; margin: 1rem 0 }}
th {{ text-align: left; font-weight: normal; padding: .2rem 2rem .2rem 0 }}
td {{ text-align: right; font-variant-numeric: tabular-nums }}
</style>
<h1>{html.escape(title)}</h1>
<table>{rows}</table>
{svg}
</html>
"""
