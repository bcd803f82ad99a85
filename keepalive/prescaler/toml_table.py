"""Tables of TOML, read key by key, so that whatever is not known is refused."""

from __future__ import annotations

import difflib
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


class TomlTable:
    """A table that knows where it is, and which of its keys were asked for.

    What is missing or not possible is a `ValueError` that names the place.
    """

    def __init__(self, values: dict[str, Any], name: str) -> None:
        self._values, self._name = values, name
        self._asked: set[str] = set()
        self._children: list[TomlTable] = []

    def place(self, key: str) -> str:
        """Where a key is, in words."""
        return f"{self._name}: {key}" if self._name else key

    def word(self, key: str) -> str:
        """A text that is not empty."""
        value = self._get(key)
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(key, "a text in quotes is needed")
        return value

    def whole(self, key: str, least: int, most: int) -> int:
        """A whole number in a range."""
        value = self._get(key)
        if type(value) is not int or not least <= value <= most:
            raise self._wrong(key, f"a whole number from {least} to {most} is needed")
        return value

    def number(self, key: str, least: float, most: float, default: float | None = None) -> float:
        """A number in a range."""
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

    def table(self, key: str) -> TomlTable | None:
        """The table under a key; None where it is empty or missing."""
        value = self._get(key, {})
        if not isinstance(value, dict):
            raise self._wrong(key, f"write it as [{key}]")
        return self._child(value, key) if value else None

    def tables(self, key: str) -> list[TomlTable]:
        """The tables of an array, which may be missing."""
        value = self._get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self._wrong(key, f"write it as [[{key}]]")
        return [self._child(each, f"{key} {n}") for n, each in enumerate(value, 1)]

    def close(self) -> None:
        """Refuse what nobody has asked for, first in the tables within."""
        for child in self._children:
            child.close()
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

    def _child(self, values: dict[str, Any], name: str) -> TomlTable:
        child = TomlTable(values, name)
        self._children.append(child)
        return child
