"""Records that are leased: one store, of which events and jobs are views.

Whoever works on something holds a lease of its record and proves it with a token. A worker that
falls silent stops renewing; the next one takes over with a token of its own, and what comes with
the old token changes nothing any more. With leases of 30 seconds:

     0 s  A takes the record; its token is a, its lease ends at 30
    10 s  A renews: the lease ends at 40. Then A's machine stops for a minute.
    41 s  B takes over; its token is b, its lease ends at 71
    70 s  A goes on and says that the work is done: its token is not b, so nothing changes.

So work may be done twice, and what is done has to bear that; a record is never written by two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Namespace:
    """Where the records of a view are in a Redis.

    Attributes:
        prefix: what all keys begin with; it has a hash tag, so that a cluster keeps them together.
        records: what keys of records have before the name.
        leases: the list of what is taken over when its lease has run out.
    """

    prefix: str
    records: str
    leases: str


class RecordStoreError(Exception):
    """The store does not answer, or cannot be reached."""


class RecordStore(Protocol):
    """Keeps records.

    Attributes:
        lasting: whether records outlive this process.
    """

    lasting: bool

    async def decide(
        self, what: str, name: str = "", token: str = "", *facts: str | int
    ) -> list[Any]:
        """Take one decision, which is atomic.

        Args:
            what: one of those that `records.lua` has.
            name: of the record, if the decision is about one.
            token: of who holds its lease, or wants to.
            facts: what else the decision takes; times are milliseconds.

        Returns:
            The answer. A record in it is a list of names and values of fields, for `fields`. Of
            `BY_HOLDERS` it is `[1]`, or `[0]` where the token does not hold the lease, so that
            nothing was changed.

        Raises:
            RecordStoreError: the store does not answer, or cannot be reached.
        """
        ...

    async def nearly_full(self) -> bool:
        """Whether the store has too little memory left for further jobs."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


BY_HOLDERS = {"renew", "accept", "release", "mark", "finish"}
"""The decisions that only the holder of a lease may have taken."""


def fields(words: Iterable[str]) -> dict[str, str]:
    """A record from the names and values of its fields, one after the other."""
    each = iter(words)
    return dict(zip(each, each, strict=True))


def words(record: Mapping[str, str]) -> list[str]:
    """The names and values of the fields of a record, one after the other."""
    return [word for pair in record.items() for word in pair]


def milliseconds(seconds: float) -> int:
    """The whole milliseconds of a time, as stores count."""
    return int(seconds * 1e3)
