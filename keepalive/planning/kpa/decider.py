"""How many replicas the load asks for: the decision of one tick, as a function without state.

A worked example: the target is 10, 4 replicas are ready, the panic threshold is 2, and after 48
seconds without load there were 12 with a load of 100. The stable window of 60 seconds averages 20,
which asks for 2 replicas; the panic window of 6 seconds averages 100, which asks for 10. As 10 ÷ 4
is at least 2, it panics and wants 10 now. When 9 are ready and the panic window averages 60, which
asks for 6, it stays at 10: a panic never wants fewer than before, so that the pause between two
bursts takes no replica away that the second one needs. It ends one stable window after the last
tick that asked for twice the ready replicas.
"""

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
        stable: the average load over the stable window.
        panic: the average load over the panic window.
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
        panic_time: when the panic threshold was last reached; None while it does not panic.
        max_panic_pods: the most replicas wanted in this panic.
        delay_window: with a delay for scaling down, (tick, wanted) of the decisions that still
            count, by tick, each wanting fewer than the one before.
    """

    panic_time: int | None = None
    max_panic_pods: int = 0
    delay_window: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ScaleResult:
    """What follows.

    Attributes:
        desired: replicas, before minimum and maximum.
        excess_burst_capacity: requests that could come at once beyond the target burst capacity;
            below 0 the activator stays in the path.
        state: for the next decision.
    """

    desired: int
    excess_burst_capacity: int
    state: DeciderState


def initial_state(now: int, ready: int) -> DeciderState:
    """What a new autoscaler starts with: it knows no load, so above one replica it panics."""
    return DeciderState(panic_time=now, max_panic_pods=ready) if ready > 1 else DeciderState()


def initial_excess_burst_capacity(settings: AutoscalerSettings) -> int:
    """The excess burst capacity before any load is known: that of the initial replicas."""
    if settings.target_burst_capacity in {0, -1}:
        return int(settings.target_burst_capacity)
    return int(settings.initial_scale * settings.goal.total - settings.target_burst_capacity)


def decide(
    settings: AutoscalerSettings, observed: KpaObservation, state: DeciderState
) -> ScaleResult:
    """Decide for one tick.

    It follows the stable window. When the panic window alone asks for `panic_threshold` times the
    ready replicas, it panics: it takes the larger of both, and never fewer than before in this
    panic. It calms down one stable window after the last such moment.
    """
    total, target = settings.goal
    ready = max(1, observed.ready)
    wanted = math.ceil(observed.stable / target)
    wanted_in_panic = math.ceil(observed.panic / target)
    desired = _bounded(settings, wanted, ready)
    panic_time, max_panic_pods = state.panic_time, state.max_panic_pods
    if wanted_in_panic / ready >= settings.panic_threshold:
        panic_time = observed.now
    elif panic_time is not None and panic_time + settings.stable_window_s < observed.now:
        panic_time, max_panic_pods = None, 0
    if panic_time is not None:
        desired = max(desired, _bounded(settings, wanted_in_panic, ready), max_panic_pods)
        max_panic_pods = desired
    delayed = state.delay_window
    if settings.scale_down_delay_s:
        delayed = _delayed(delayed, observed.now // TICK_S, desired, settings.scale_down_delay_s)
        desired = delayed[0][1]
    excess = _excess_burst_capacity(settings, observed, total)
    return ScaleResult(desired, excess, DeciderState(panic_time, max_panic_pods, delayed))


def _bounded(settings: AutoscalerSettings, wanted: int, ready: int) -> int:
    """No faster up or down than allowed; with any load at least the activation scale."""
    most = math.ceil(settings.max_scale_up_rate * ready)
    least = math.floor(ready / settings.max_scale_down_rate)
    bounded = min(max(wanted, least), most)
    return max(bounded, settings.activation_scale) if wanted > 0 else bounded


def _delayed(
    delay_window: tuple[tuple[int, int], ...], tick: int, wanted: int, delay_s: int
) -> tuple[tuple[int, int], ...]:
    """The window with one more decision; its first entry is the largest within the delay."""
    oldest = tick - math.ceil(delay_s / TICK_S)
    kept = [each for each in delay_window if each[0] > oldest]
    if kept and kept[-1][0] == tick:  # two decisions in one tick: the larger counts
        wanted = max(wanted, kept[-1][1])
    while kept and kept[-1][1] <= wanted:
        kept.pop()
    return (*kept, (tick, wanted))


def _excess_burst_capacity(
    settings: AutoscalerSettings, observed: KpaObservation, total: float
) -> int:
    """What all ready replicas can take, less the target burst capacity and the load.

    Targets of 0 (never behind the activator) and -1 (always behind it) are themselves the result.
    """
    if settings.target_burst_capacity in {0, -1}:
        return int(settings.target_burst_capacity)
    return math.floor(observed.ready * total - settings.target_burst_capacity - observed.panic)
