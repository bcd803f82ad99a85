"""The file of a schedule: TOML in the format that `docs/prescale.md` describes.

Whatever is not known is refused, and its place is named.
"""

from __future__ import annotations

import math
import tomllib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from keepalive.failure import Exit, Failure, bring
from keepalive.prescaler.schedule import Batch, FloorEvent, FloorWindow, Schedule, TagPool
from keepalive.prescaler.toml_table import TomlTable
from keepalive.times import zone

if TYPE_CHECKING:
    from pathlib import Path
    from zoneinfo import ZoneInfo

_MOST_HOURS = 168.0
_MOST_FLOOR = 10_000
_MOST_LEAD_MINUTES = 120.0


def read(path: Path) -> Schedule:
    """Read a file.

    Raises:
        Failure: it cannot be read, or something in it is not possible; the text names it.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Failure(f"The schedule {path} cannot be read: {reason}.", Exit.CONFIG) from None
    try:
        return parse(text)
    except ValueError as error:
        raise Failure(f"The schedule {path} is wrong: {error}.", Exit.CONFIG) from None


def parse(text: str) -> Schedule:
    """Read the text of a schedule.

    Raises:
        ValueError: it is no TOML, or something in it is not possible; the text names it.
    """
    table = TomlTable(tomllib.loads(text), "")
    timezone = zone(table.word("timezone"))
    max_floor = table.whole("max_floor", 1, _MOST_FLOOR)
    schedule = Schedule(
        timezone=timezone,
        lead=timedelta(minutes=table.number("lead_minutes", 0, _MOST_LEAD_MINUTES, 12.0)),
        floor=table.whole("floor", 0, max_floor),
        max_floor=max_floor,
        gpu_hours_per_day=table.number("gpu_hours_per_day", 0, math.inf, math.inf),
        release=timedelta(minutes=table.number("release_minutes", 1, 24 * 60, 30.0)),
        windows=tuple(_window(each, max_floor) for each in table.tables("window")),
        events=tuple(_event(each, max_floor, timezone) for each in table.tables("event")),
        pools=tuple(
            TagPool(each.word("tag"), each.whole("floor", 0, max_floor))
            for each in table.tables("pool")
        ),
        batch=_batch(table),
    )
    table.close()
    return schedule


def _window(table: TomlTable, most: int) -> FloorWindow:
    start = table.word("start")
    if len(start.split()) != 5:
        raise ValueError(f"{table.place('start')}: {start!r} has not the five fields of cron")
    _check_cron(start, table.place("start"))
    hours = table.number("hours", 0, _MOST_HOURS)
    if not hours:
        raise ValueError(f"{table.place('hours')}: a window has more than 0 hours")
    return FloorWindow(start, timedelta(hours=hours), table.whole("floor", 0, most))


def _event(table: TomlTable, most: int, timezone: ZoneInfo) -> FloorEvent:
    begins, ends = table.moment("from", timezone), table.moment("to", timezone)
    if ends <= begins:
        raise ValueError(f"{table.place('to')}: it is not after `from`")
    return FloorEvent(begins, ends, table.whole("floor", 0, most))


def _batch(table: TomlTable) -> Batch | None:
    if (given := table.table("batch")) is None:
        return None
    return Batch(
        given.word("service"),
        given.whole("floor", 0, _MOST_FLOOR),
        given.whole("gpus", 1, _MOST_FLOOR),
    )


def _check_cron(expression: str, place: str) -> None:
    try:
        from cronsim import CronSim, CronSimError
    except ModuleNotFoundError as error:
        raise Failure(f"Schedules need {error.name}: {bring('k8s')}", Exit.UNAVAILABLE) from None
    try:
        next(CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise ValueError(f"{place}: {expression!r} is not cron's: {error}") from None
    except StopIteration:
        raise ValueError(f"{place}: {expression!r} never comes") from None
