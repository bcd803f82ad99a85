"""The floors that a load asks for, as windows of a schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from keepalive.planning.kpa.decider import TICK_S
from keepalive.planning.search.choice import Cover
from keepalive.planning.traces.shapes import DAY_S
from keepalive.prescaler.schedule import FloorWindow, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from numpy.typing import NDArray

    from keepalive.planning.search.choice import PlanChoice
    from keepalive.planning.simulation.service import BatchTimes

SLOT_S = 900
"""Windows begin and end at quarters of an hour."""
_SLOTS = DAY_S // SLOT_S
_LEVELS = 6
"""The most different floors above the lowest."""
_HELD = 0.9
"""A replica that is asked for this part of its capacity still keeps up."""
_BUDGET = 1.5
"""The day's budget is so many times what the schedule itself takes."""


@dataclass(frozen=True, slots=True)
class Days:
    """Some days of the week.

    Attributes:
        cron: as cron's last field.
        numbers: 0 for Monday.
    """

    cron: str
    numbers: tuple[int, ...]


ALL = Days("*", tuple(range(7)))
WEEK = (Days("mon-fri", (0, 1, 2, 3, 4)), Days("sat,sun", (5, 6)))


def schedule(
    choice: PlanChoice,
    rates: NDArray[np.float64],
    service: BatchTimes,
    *,
    cold_s: float,
    begin: datetime,
    timezone: ZoneInfo,
) -> Schedule:
    """The schedule that a choice means for a load.

    From a week on, working days and weekends get windows of their own; else every day is the same.

    Args:
        choice: what is chosen.
        rates: (seconds,) requests per second.
        service: how long batches take.
        cold_s: seconds until a new replica is ready, at worst.
        begin: the moment of the first second.
        timezone: of the windows.
    """
    needs = np.zeros(len(rates), np.int64)
    if choice.cover is not Cover.NONE:
        needs = np.ceil(rates / choice.rate(service) - 1e-9).astype(np.int64)
        if choice.cover is Cover.RAMPS:
            needs[~steep(choice, rates, service, cold_s)] = 0
    needs = np.minimum(needs, choice.most)
    windows: list[FloorWindow] = []
    for days in WEEK if len(rates) >= 7 * DAY_S else (ALL,):
        windows += _windows(_slots(needs, days, begin), choice.floor, days)
    lowest = choice.floor * 24
    hours = lowest + max((_hours(windows, choice.floor, day) for day in range(7)), default=0)
    return Schedule(
        timezone=timezone,
        lead=timedelta(seconds=choice.lead_s),
        floor=choice.floor,
        max_floor=choice.most,
        gpu_hours_per_day=float(math.ceil(_BUDGET * max(hours, choice.most))),
        windows=tuple(windows),
    )


def steep(
    choice: PlanChoice, rates: NDArray[np.float64], service: BatchTimes, cold_s: float
) -> NDArray[np.bool_]:
    """(seconds,) where the load climbs beyond what is there before new replicas are.

    What is there follows the load at the chosen use, as the autoscaler would; new replicas come
    after half the window, two ticks and a cold start. Of such a climb all is marked, to its top.
    """
    react = math.ceil(cold_s + choice.window_s / 2 + 2 * TICK_S)
    there = np.maximum(np.ceil(rates / choice.rate(service)), max(choice.floor, 1))
    held = there * service.up_to(choice.batch).most_per_second * _HELD
    later = np.concatenate([rates[react:], np.full(min(react, len(rates)), rates[-1])])
    marked = later > held
    for at in np.flatnonzero(marked[:-1] & ~marked[1:]):
        marked[at : at + react + SLOT_S] = True
    return marked


def _slots(needs: NDArray[np.int64], days: Days, begin: datetime) -> list[int]:
    """The largest need of each quarter of an hour on those days."""
    found = [0] * _SLOTS
    offset = begin.hour * 3600 + begin.minute * 60 + begin.second
    for first in range(0, len(needs), SLOT_S):
        at = offset + first
        if (begin.weekday() + at // DAY_S) % 7 in days.numbers:
            slot = at % DAY_S // SLOT_S
            found[slot] = max(found[slot], int(needs[first : first + SLOT_S].max()))
    return found


def _windows(slots: Sequence[int], floor: int, days: Days) -> Iterator[FloorWindow]:
    """Windows of which, at any time, the largest floor is not below the slot's need."""
    top = max(slots)
    step = max(1, math.ceil((top - floor) / _LEVELS))
    rounded = [floor + step * math.ceil(max(0, need - floor) / step) for need in slots]
    for level in sorted({min(top, each) for each in rounded if each > floor}):
        above = [min(top, each) >= level for each in rounded]
        for first, length in _runs(above):
            start = f"{first * SLOT_S // 60 % 60} {first * SLOT_S // 3600} * * {days.cron}"
            yield FloorWindow(start, timedelta(seconds=length * SLOT_S), level)


def _runs(flags: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """(first, length) of each stretch that is true."""
    first = None
    for at, flag in enumerate([*flags, False]):
        if flag and first is None:
            first = at
        elif not flag and first is not None:
            yield first, at - first
            first = None


def _hours(windows: Sequence[FloorWindow], floor: int, day: int) -> float:
    """Replica-hours above the lowest floor that the windows take on a day of the week."""
    best = [floor] * _SLOTS
    for window in windows:
        minute, hour, _, _, cron = window.start.split()
        if day not in next(each.numbers for each in (ALL, *WEEK) if each.cron == cron):
            continue
        first = (int(hour) * 3600 + int(minute) * 60) // SLOT_S
        for slot in range(first, first + int(window.length.total_seconds()) // SLOT_S):
            best[slot % _SLOTS] = max(best[slot % _SLOTS], window.floor)
    return sum(each - floor for each in best) * SLOT_S / 3600
