"""How many replicas the load asks for: the decision of one tick, as a function without state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keepalive.planning.kpa.settings import AutoscalerSettings

TICK_S = 2
"""Seconds between two decisions."""


@dataclass(frozen=True, slots=True)
class KpaObservation:
    """What is seen at one tick.

    Attributes:
        now: seconds.
        stable: the average over the stable window.
        panic: the average over the panic window.
        ready: replicas that are ready.
    """

    now: int
    stable: float
    panic: float
    ready: int


@dataclass(frozen=True, slots=True)
class DeciderState:
    """What one decision leaves to the next.

    Attributes:
        panicked: when the load was last over the threshold, if it panics.
        most: the most replicas wanted in this panic; without one nothing.
        recent: with a delay for scaling down, (tick, wanted) of the decisions that still count, by
            tick, each wanting fewer than the one before.
    """

    panicked: int | None = None
    most: int = 0
    recent: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ScaleResult:
    """What follows.

    Attributes:
        desired: replicas, before minimum and maximum.
        spare: requests that could come at once beyond the burst capacity; below 0 the activator
            stays in the path.
        memory: for the next decision.
    """

    desired: int
    spare: int
    memory: DeciderState


def initial_state(now: int, ready: int) -> DeciderState:
    """What a new autoscaler starts with: it knows no load, so above one replica it panics."""
    return DeciderState(panicked=now, most=ready) if ready > 1 else DeciderState()


def initial_excess_burst_capacity(settings: AutoscalerSettings) -> int:
    """The spare burst capacity before anything is known."""
    if settings.burst_capacity in {0, -1}:
        return int(settings.burst_capacity)
    return int(settings.initial_scale * settings.goal.total - settings.burst_capacity)


def decide(
    settings: AutoscalerSettings, observed: KpaObservation, memory: DeciderState
) -> ScaleResult:
    """Decide for one tick.

    It follows the stable window. When the panic window alone asks for `panic_threshold` times the
    ready replicas, it panics: it takes the larger of both, and never fewer than before in this
    panic. It calms down one stable window after the last such moment.
    """
    total, target = settings.goal
    ready = max(1, observed.ready)
    stable = math.ceil(observed.stable / target)
    panic = math.ceil(observed.panic / target)
    desired = _bounded(settings, stable, ready)
    panicked, most = memory.panicked, memory.most
    if panic / ready >= settings.panic_threshold:
        panicked = observed.now
    elif panicked is not None and panicked + settings.window_s < observed.now:
        panicked, most = None, 0
    if panicked is not None:
        desired = most = max(desired, _bounded(settings, panic, ready), most)
    recent = memory.recent
    if settings.scale_down_delay_s:
        recent = _remembered(recent, observed.now // TICK_S, desired, settings.scale_down_delay_s)
        desired = recent[0][1]
    return ScaleResult(
        desired, _spare(settings, observed, total), DeciderState(panicked, most, recent)
    )


def _bounded(settings: AutoscalerSettings, wanted: int, ready: int) -> int:
    """No faster up or down than allowed; with any load at least the activation scale."""
    most = math.ceil(settings.max_up * ready)
    least = math.floor(ready / settings.max_down)
    bounded = min(max(wanted, least), most)
    return max(bounded, settings.activation_scale) if wanted > 0 else bounded


def _remembered(
    recent: tuple[tuple[int, int], ...], tick: int, wanted: int, delay_s: int
) -> tuple[tuple[int, int], ...]:
    """Add one decision; the first of the result is the largest within the delay."""
    oldest = tick - math.ceil(delay_s / TICK_S)
    kept = [each for each in recent if each[0] > oldest]
    if kept and kept[-1][0] == tick:  # two decisions in one tick: the larger counts
        wanted = max(wanted, kept[-1][1])
    while kept and kept[-1][1] <= wanted:
        kept.pop()
    return (*kept, (tick, wanted))


def _spare(settings: AutoscalerSettings, observed: KpaObservation, total: float) -> int:
    if settings.burst_capacity in {0, -1}:
        return int(settings.burst_capacity)
    return math.floor(observed.ready * total - settings.burst_capacity - observed.panic)
