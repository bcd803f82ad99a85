"""A TOML table taken apart key by key, so that everything that is wrong with it can be named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

_KINDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"} | {
    list: "an array",
    dict: "a table",
}


@dataclass(slots=True)
class Table:
    """One table.

    Attributes:
        content: its keys and values; what has been taken is gone from it.
        place: how messages name it.
        problems: what is wrong, shared with the tables inside and around.
    """

    content: dict[str, Any]
    place: str
    problems: list[str] = field(default_factory=list)

    def wrong(self, what: str) -> None:
        """Note that something is wrong."""
        self.problems.append(f"{self.place}: {what}")

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The value of a key, or an empty one of its kind after noting what is wrong.

        Args:
            key: the key.
            kind: str, int, float, bool, list or dict.
            default: its value when it is missing; None when it must not be.
        """
        value = self.content.pop(key, default)
        if value is None:
            self.wrong(f"`{key}` is missing ({_KINDS[kind]})")
            return kind()
        if type(value) is int and kind is float:
            return kind(value)  # type: ignore[call-arg]
        if type(value) is not kind:
            self.wrong(f"`{key}` must be {_KINDS[kind]}")
            return kind()
        return value

    def inner(self, content: Any, key: str) -> Table:
        """A table inside this one; an empty one after noting that it is none."""
        if not isinstance(content, dict):
            self.wrong(f"`{key}` must hold tables")
            content = {}
        return Table(dict(content), f"{self.place}: {key}", self.problems)

    def close(self) -> None:
        """Note every key that nothing has taken."""
        for key in self.content:
            self.wrong(f"unknown key `{key}`")
