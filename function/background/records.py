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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.request_context import Lane

Fields = Mapping[str, str]
"""A record by the names of its fields; empty where there is none."""


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


class StoreError(Exception):
    """The store does not answer, or cannot be reached."""


class RecordStore(Protocol):
    """Keeps records. Each call is one decision, atomic, and may raise `StoreError`.

    What takes a token changes nothing, and returns False, unless the token holds the lease.

    Attributes:
        lasting: whether records outlive this process.
    """

    lasting: bool

    async def get(self, name: str) -> Fields:
        """A record."""
        ...

    async def take(
        self, token: str, lease_s: float, state: str, lanes: Sequence[Lane] = ()
    ) -> tuple[str, Fields] | None:
        """What is to be done next, with its name: what lost its worker, else the first job queued.

        Args:
            token: of the new holder.
            lease_s: how long it has.
            state: the record's from now on.
            lanes: whose queues count.
        """
        ...

    async def renew(self, name: str, token: str, lease_s: float) -> bool:
        """Have the lease end so many seconds from now."""
        ...

    async def release(
        self,
        name: str,
        token: str,
        again_s: float = 0.0,
        fields: Fields | None = None,
        *,
        tried: bool = True,
    ) -> bool:
        """End a lease: it can be taken over after `again_s`; a claim that is not accepted is gone.

        Unless it was `tried`, it does not count among the tries.
        """
        ...

    async def claim(
        self, name: str, alias: str, token: str, event: str, *, lease_s: float, keep_s: float
    ) -> tuple[Fields, float]:
        """Lease the record of an event unless it is done or held, under this or another name.

        Args:
            name: of the record.
            alias: a second name; it may lead to the record of an earlier event.
            token: of the asker.
            event: its text.
            lease_s: how long the asker has.
            keep_s: after how long without a change the record is forgotten.

        Returns:
            No fields when the asker holds it now; else what is there, and for how many seconds it
            is still held.
        """
        ...

    async def accept(self, name: str, token: str) -> bool:
        """Have a claim taken over when its lease runs out."""
        ...

    async def settle(self, name: str, alias: str, fields: Fields, keep_s: float) -> None:
        """Put down what became of an event, whoever holds it, and keep it for so long."""
        ...

    async def open(
        self, name: str, lane: Lane, head_start_s: float, owner: str, fields: Fields,
        *, limit: int, keep_s: float,
    ) -> tuple[str, Fields]:  # fmt: skip
        """Queue a job, unless its name is taken or `limit` jobs are open.

        Returns:
            `new`, `old` or `full`, and the record of that name.
        """
        ...

    async def mark(self, name: str, token: str, fields: Fields) -> bool:
        """Change fields of a job."""
        ...

    async def finish(
        self, name: str, token: str, state: str, fields: Fields, keep_s: float
    ) -> bool:
        """End a job with its fields; a callback is due from now on. Twice is the same as once."""
        ...

    async def end(self, name: str, keep_s: float) -> tuple[str, Fields]:
        """Cancel an open job, delete one that has ended; its state before, and the record."""
        ...

    async def call(self, lease_s: float) -> Fields:
        """A job whose callback is due; nobody else gets it for so long."""
        ...

    async def called(self, name: str, fields: Fields, again_s: float | None) -> None:
        """Put down what became of a callback; it is due again after so long, or never."""
        ...

    async def changed(self, known: Mapping[str, int]) -> dict[str, Fields]:
        """Of records whose version is known, those that have another now."""
        ...

    async def of(self, owner: str | None, start: int, count: int) -> list[Fields]:
        """Jobs of an owner, or of everybody, the newest first."""
        ...

    async def over(self) -> list[Fields]:
        """Some jobs whose time has run out."""
        ...

    async def forget(self, name: str) -> None:
        """Delete a job from everywhere."""
        ...

    async def ahead(self, name: str) -> int | None:
        """How many jobs come before a queued one; None when it is not queued."""
        ...

    async def counts(self) -> tuple[int, int, int]:
        """How many jobs are queued, leased, and have a callback due."""
        ...

    async def nearly_full(self) -> bool:
        """Whether the store has too little memory left for further jobs."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def milliseconds(seconds: float) -> int:
    """The whole milliseconds of a time, as stores count."""
    return int(seconds * 1e3)
