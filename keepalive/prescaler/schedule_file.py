"""The file of a schedule: TOML, whose format `docs/prescale.md` has.

Whatever is not known is refused, and its place is named.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from keepalive.failure import Exit, Failure
from keepalive.prescaler.schedule import Batch, FloorEvent, FloorWindow, Schedule, TagPool
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
    table = _Table(tomllib.loads(text), "")
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
    for done in (*table.read, table):
        done.close()
    return schedule


def _window(table: _Table, most: int) -> FloorWindow:
    start = table.word("start")
    if len(start.split()) != 5:
        raise ValueError(f"{table.place('start')}: {start!r} has not the five fields of cron")
    _check_cron(start, table.place("start"))
    hours = table.number("hours", 0, _MOST_HOURS)
    if not hours:
        raise ValueError(f"{table.place('hours')}: a window has more than 0 hours")
    return FloorWindow(start, timedelta(hours=hours), table.whole("floor", 0, most))


def _event(table: _Table, most: int, timezone: ZoneInfo) -> FloorEvent:
    begins, ends = table.moment("from", timezone), table.moment("to", timezone)
    if ends <= begins:
        raise ValueError(f"{table.place('to')}: it is not after `from`")
    return FloorEvent(begins, ends, table.whole("floor", 0, most))


def _batch(table: _Table) -> Batch | None:
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
        raise Failure(
            f"Schedules need {error.name}: pip install 'ember-function[k8s]'", Exit.UNAVAILABLE
        ) from None
    try:
        next(CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise ValueError(f"{place}: {expression!r} is not cron's: {error}") from None
    except StopIteration:
        raise ValueError(f"{place}: {expression!r} never comes") from None


class _Table:
    """A table of TOML that knows where it is, and which of its keys were asked for."""

    def __init__(self, values: dict[str, Any], name: str) -> None:
        self._values, self._name = values, name
        self._asked: set[str] = set()
        self.read: list[_Table] = []

    def place(self, key: str) -> str:
        """Where a key is, in words."""
        return f"{self._name}: {key}" if self._name else key

    def word(self, key: str) -> str:
        value = self._get(key)
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(key, "a text in quotes is needed")
        return value

    def whole(self, key: str, least: int, most: int) -> int:
        value = self._get(key)
        if type(value) is not int or not least <= value <= most:
            raise self._wrong(key, f"a whole number from {least} to {most} is needed")
        return value

    def number(self, key: str, least: float, most: float, default: float | None = None) -> float:
        value = self._get(key, default)
        if type(value) not in {int, float} or not least <= value <= most:
            upto = f" to {most:g}" if math.isfinite(most) else " on"
            raise self._wrong(key, f"a number from {least:g}{upto} is needed")
        return float(value)

    def moment(self, key: str, timezone: ZoneInfo) -> datetime:
        """A date and a time; one without an offset is by the clocks of the time zone."""
        value = self._get(key)
        if not isinstance(value, datetime):
            raise self._wrong(key, "a time like 2026-12-24T18:00:00+01:00 is needed")
        aware = value if value.tzinfo else value.replace(tzinfo=timezone)
        return aware.astimezone(UTC)

    def table(self, key: str) -> _Table | None:
        value = self._get(key, {})
        if not isinstance(value, dict):
            raise self._wrong(key, f"write it as [{key}]")
        return self._child(value, key) if value else None

    def tables(self, key: str) -> list[_Table]:
        value = self._get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self._wrong(key, f"write it as [[{key}]]")
        return [self._child(each, f"{key} {n}") for n, each in enumerate(value, 1)]

    def close(self) -> None:
        """Refuse what nobody has asked for."""
        for key in self._values.keys() - self._asked:
            like = difflib.get_close_matches(key, self._asked, 1)
            meant = f"; is it `{like[0]}`?" if like else ""
            raise self._wrong(key, f"there is no such key{meant}")

    def _get(self, key: str, default: Any = None) -> Any:
        self._asked.add(key)
        if (value := self._values.get(key, default)) is None:
            raise self._wrong(key, "is missing")
        return value

    def _wrong(self, key: str, what: str) -> ValueError:
        return ValueError(f"{self.place(key)}: {what}")

    def _child(self, values: dict[str, Any], name: str) -> _Table:
        child = _Table(values, name)
        self.read.append(child)
        return child
