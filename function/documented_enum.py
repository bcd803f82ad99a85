"""Words of a fixed list, each with its meaning for the documentation."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable


class DocumentedEnum(StrEnum):
    """A word as its value, with what it means."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:
        """Make a member: its value is the word alone, by which it can be found."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


def meanings(words: Iterable[DocumentedEnum]) -> str:
    """The words of a label, each with what it means."""
    return "; ".join(f"`{each}`: {each.meaning}" for each in words)
