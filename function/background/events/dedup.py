"""The ledger: what became of each event, so that what comes twice is done once.

What every ledger can do, and the one in memory.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable

KEEP_S = 7 * 86_400.0
"""How long it is remembered what became of an event: as long as brokers deliver again."""

KEEP_FAILED_S = 600.0
"""How long that it cannot work: a broker's own tries end by then, and once the cause is mended, it
can be taken from the dead letters and delivered again."""

MOST = 20_000
"""How many events memory remembers at most; of more, the oldest that are done are forgotten."""

_SWEEP_S = 60.0


class EventState(StrEnum):
    """What is known about an event when it comes."""

    MINE = "mine"
    RUNNING = "running"
    ACCEPTED = "accepted"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer of a ledger to whoever wants to work on an event.

    Attributes:
        state: `MINE`: nobody works on it, so the asker does; `RUNNING`: somebody does; `ACCEPTED`:
            the same, and it will be done even if that one dies; `DONE`: see `result`.
        token: proves later that the claim was this one.
        result: as it was told to `finish`.
        left_s: how long the one who works on it has until others may.
    """

    state: EventState
    token: str = ""
    result: str = ""
    left_s: float = 0.0


@dataclass(frozen=True, slots=True)
class EventKeys:
    """What makes events the same, as digests, which name nobody and have one length.

    Attributes:
        upload: of the upload that they tell of.
        event: of their source and id.
    """

    upload: str
    event: str

    @classmethod
    def of(cls, upload: str, source: str, id: str) -> Self:  # noqa: A002
        """The keys of one event."""
        return cls(_digest(upload), _digest(f"{source}\n{id}"))


@dataclass(frozen=True, slots=True)
class EventRemainder:
    """An accepted event whose lease has run out; it is the finder's from then on."""

    keys: EventKeys
    token: str
    event: str


class DedupStore(Protocol):
    """Remembers events. Every call may raise `DedupStoreError`."""

    async def claim(self, keys: EventKeys, event: str, lease_s: float) -> Claim:
        """Ask to work on an event; the text of it is kept until it is finished."""
        ...

    async def renew(self, keys: EventKeys, token: str, lease_s: float) -> bool:
        """Keep a claim; whether it is still the asker's."""
        ...

    async def accept(self, keys: EventKeys, token: str) -> bool:
        """Promise that it will be done, by whoever finds it when the lease runs out."""
        ...

    async def finish(
        self, keys: EventKeys, token: str, result: str, keep_s: float = KEEP_S
    ) -> None:
        """Remember for so long what became of it."""
        ...

    async def release(self, keys: EventKeys, token: str) -> None:
        """Give a claim up; what was accepted is anybody's at once."""
        ...

    async def left(self, lease_s: float) -> EventRemainder | None:
        """An accepted event that nobody works on any more, as a claim of the asker."""
        ...

    async def close(self) -> None:
        """Close what it holds open."""
        ...


class DedupStoreError(Exception):
    """The ledger cannot be asked."""


@dataclass(slots=True)
class _Record:
    state: EventState
    token: str
    until: float
    result: str = ""


class InMemoryDedupStore:
    """Remembers events in this process: for one replica, and gone with it.

    What it has not finished can only be done when the broker delivers it again, so nothing is ever
    accepted.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._records: dict[str, _Record] = {}
        self._aliases: dict[str, str] = {}
        self._sweep_at = 0.0

    def __len__(self) -> int:
        return len(self._records) + len(self._aliases)

    async def claim(self, keys: EventKeys, event: str, lease_s: float) -> Claim:  # noqa: ARG002
        """See `DedupStore`."""
        now = self._clock()
        self._sweep(now)
        alias = self._aliases.get(keys.event, keys.upload)
        record = self._records.get(alias) or self._records.get(keys.upload)
        if record and record.until > now:
            left_s = record.until - now
            return Claim(record.state, result=record.result, left_s=left_s)
        token = secrets.token_hex(8)
        self._records[keys.upload] = _Record(EventState.RUNNING, token, now + lease_s)
        self._aliases[keys.event] = keys.upload
        return Claim(EventState.MINE, token)

    async def renew(self, keys: EventKeys, token: str, lease_s: float) -> bool:
        """See `DedupStore`."""
        if record := self._mine(keys, token):
            record.until = self._clock() + lease_s
        return record is not None

    async def accept(self, keys: EventKeys, token: str) -> bool:  # noqa: ARG002
        """See `DedupStore`."""
        return False

    async def finish(
        self, keys: EventKeys, token: str, result: str, keep_s: float = KEEP_S
    ) -> None:
        """See `DedupStore`."""
        self._records.pop(keys.upload, None)  # what is done is put behind what was done before
        self._records[keys.upload] = _Record(EventState.DONE, token, self._clock() + keep_s, result)
        if len(self._records) > MOST:
            done = (key for key, each in self._records.items() if each.state is EventState.DONE)
            del self._records[next(done)]

    async def release(self, keys: EventKeys, token: str) -> None:
        """See `DedupStore`."""
        if self._mine(keys, token):
            del self._records[keys.upload]

    async def left(self, lease_s: float) -> EventRemainder | None:  # noqa: ARG002
        """See `DedupStore`."""
        return None

    async def close(self) -> None:
        """See `DedupStore`."""

    def _mine(self, keys: EventKeys, token: str) -> _Record | None:
        record = self._records.get(keys.upload)
        mine = record and record.token == token and record.state is not EventState.DONE
        return record if mine else None

    def _sweep(self, now: float) -> None:
        """Now and then forget what is over."""
        if now < self._sweep_at:
            return
        self._sweep_at = now + _SWEEP_S
        self._records = {key: each for key, each in self._records.items() if each.until > now}
        self._aliases = {key: to for key, to in self._aliases.items() if to in self._records}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
