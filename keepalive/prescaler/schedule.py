"""The schedule: which warm floor is wanted when, as people or the planner have written it down.

What is planned for a moment is a pure function of the schedule and that moment. From where it is
read is the business of `keepalive.prescaler.schedule_file`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

_MARGIN = timedelta(hours=3)
"""No clock is set back by more, so no start within a window is missed by beginning that early."""


@dataclass(frozen=True, slots=True)
class FloorWindow:
    """A floor that comes again and again.

    Attributes:
        start: when it begins, in cron's five fields, by the clocks of the schedule's time zone.
        length: how long it lasts, in time that passes, whatever clocks do meanwhile.
        floor: replicas.
    """

    start: str
    length: timedelta
    floor: int


@dataclass(frozen=True, slots=True)
class FloorEvent:
    """A floor for once, in place of what windows and the forecast say.

    Attributes:
        begins: when it begins.
        ends: when it is over.
        floor: replicas; fewer than usual on a holiday.
    """

    begins: datetime
    ends: datetime
    floor: int


@dataclass(frozen=True, slots=True)
class TagPool:
    """A floor of its own for the revision behind a tag, such as a canary.

    Attributes:
        tag: of the Service's traffic.
        floor: replicas, not counting those of others.
    """

    tag: str
    floor: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The Service that works on what nobody waits for, and gives its GPUs up first.

    Attributes:
        service: its name.
        floor: replicas that it has while there are GPUs.
        gpus: how many there are for it and for the online service together.
    """

    service: str
    floor: int
    gpus: int


@dataclass(frozen=True, slots=True)
class PlannedFloor:
    """What the schedule says.

    Attributes:
        floor: replicas.
        why: in words.
        event: whether an event says it, so that no forecast counts.
    """

    floor: int
    why: str
    event: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is wanted when.

    Attributes:
        timezone: of windows and days.
        lead: how long before it is wanted a floor is raised.
        floor: replicas outside all windows.
        max_floor: the most replicas, whoever wants them.
        gpu_hours_per_day: the most GPU-hours of floor from midnight to midnight.
        release: how long a floor must not have been needed before it falls.
        windows: what comes again.
        events: what comes once.
        pools: floors of revisions behind tags.
        batch: who gives way.
    """

    timezone: ZoneInfo
    lead: timedelta
    floor: int
    max_floor: int
    gpu_hours_per_day: float = math.inf
    release: timedelta = timedelta(minutes=30)
    windows: tuple[FloorWindow, ...] = ()
    events: tuple[FloorEvent, ...] = ()
    pools: tuple[TagPool, ...] = ()
    batch: Batch | None = None

    def at(self, moment: datetime) -> PlannedFloor:
        """What is wanted at that moment: the largest event, else the largest window."""
        moment = moment.astimezone(UTC)  # within one zone, Python reckons by the clock
        events = [event for event in self.events if event.begins <= moment < event.ends]
        if events:
            event = max(events, key=lambda each: each.floor)
            return PlannedFloor(event.floor, f"event until {self.local(event.ends)}", event=True)
        planned = PlannedFloor(self.floor, "outside all windows")
        for window in self.windows:
            if window.floor > planned.floor and self._open(window, moment):
                planned = PlannedFloor(window.floor, f"window {window.start}")
        return planned

    def ahead(self, now: datetime) -> PlannedFloor:
        """The largest floor that is wanted from now until the lead time has passed."""
        moments = self._changes(now.astimezone(UTC))
        return max((self.at(moment) for moment in moments), key=lambda planned: planned.floor)

    def midnight(self, now: datetime) -> datetime:
        """When the running day began."""
        local = now.astimezone(self.timezone)
        return local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)

    def hours_left(self, now: datetime) -> float:
        """Hours until the running day is over; days of 23 and 25 hours are what they are."""
        tomorrow = self.midnight(self.midnight(now).astimezone(UTC) + timedelta(hours=26))
        return (tomorrow.astimezone(UTC) - now.astimezone(UTC)) / timedelta(hours=1)

    def local(self, moment: datetime) -> str:
        """For people."""
        return moment.astimezone(self.timezone).isoformat(" ", "minutes")

    def _changes(self, now: datetime) -> Iterator[datetime]:
        """Now, and the moments within the lead time at which more may be wanted."""
        yield now
        until = now + self.lead
        for event in self.events:
            yield from (edge for edge in (event.begins, event.ends) if now < edge <= until)
        for window in self.windows:
            for start in _starts(window.start, now, self.timezone):
                if start > until:
                    break
                yield start

    def _open(self, window: FloorWindow, moment: datetime) -> bool:
        start = next(_starts(window.start, moment - window.length, self.timezone), None)
        return start is not None and start <= moment


def _starts(expression: str, after: datetime, timezone: ZoneInfo) -> Iterator[datetime]:
    """When a cron expression is due after a moment, as Debian's cron has it.

    What is due while clocks are set forward begins when they have been; what would be due twice
    while they are set back is due the first time.
    """
    from cronsim import CronSim

    for start in CronSim(expression, (after - _MARGIN).astimezone(timezone)):
        if start.astimezone(UTC) > after:
            yield start.astimezone(UTC)
