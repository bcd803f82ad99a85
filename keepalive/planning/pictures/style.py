"""What pictures have in common: colours, axes, and a line for the objective."""

from __future__ import annotations

from typing import Any

INK = "#333333"
BLUE = "#2c6fbb"
AMBER = "#f2a541"
RED = "#c0392b"
GREY = "#9aa5b1"


def seconds(value: float) -> str:
    """For people."""
    return f"{value * 1e3:.0f} ms" if value < 1 else f"{value:.1f} s"


def style(axes: Any) -> None:
    """Axes without what nobody reads."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=INK, labelsize=9)
    axes.grid(axis="y", color="#e6e9ec", linewidth=0.8)
    axes.set_axisbelow(True)


def latency_axis(axes: Any) -> None:
    """Latencies on a logarithmic axis, labelled in words."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: seconds(value))
    axes.yaxis.set_minor_formatter("")
    axes.tick_params(axis="y", which="minor", length=0)


def objective_line(axes: Any, objective_s: float, *, lift: float, **text: Any) -> None:
    """A dotted line at the objective, with its name `lift` points above its right end."""
    axes.axhline(objective_s, color=INK, lw=1, ls=":")
    axes.annotate(
        f"objective {seconds(objective_s)}",
        (1, objective_s),
        xycoords=("axes fraction", "data"),
        xytext=(-2, lift),
        textcoords="offset points",
        ha="right",
        color=INK,
        **text,
    )
