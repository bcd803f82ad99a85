"""What became of each event, so that one that comes twice is done once: a view of records."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from function.background.records import Namespace, fields, milliseconds, words

if TYPE_CHECKING:
    from function.background.records import RecordStore

KEEP_S = 7 * 86_400.0
"""How long it is remembered what became of an event: as long as brokers deliver again."""

KEEP_FAILED_S = 600.0
"""How long that it cannot work: a broker's own tries end by then, and once the cause is mended, it
can be taken from the dead letters and delivered again."""

_PREFIX = "ember:{events}:"
EVENTS = Namespace(_PREFIX, records="", leases="accepted")


class EventState(StrEnum):
    """What is known about an event when it comes."""

    MINE = "mine"
    RUNNING = "running"
    ACCEPTED = "accepted"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to a wish to work on an event.

    Attributes:
        state: `MINE`: nobody works on it, so the caller does; `RUNNING`: somebody does; `ACCEPTED`:
            the same, and it will be done even if that one dies; `DONE`: see `result`.
        token: proves later that the claim was this one.
        result: what `finish` was given.
        left_s: how long the one who works on it has until others may.
    """

    state: EventState
    token: str = ""
    result: str = ""
    left_s: float = 0.0


@dataclass(frozen=True, slots=True)
class EventKeys:
    """What makes events the same, as keys that name nobody and have one length.

    Attributes:
        upload: of the upload that they are about.
        event: of their source and id.
    """

    upload: str
    event: str

    @classmethod
    def of(cls, upload: str, source: str, id: str) -> Self:  # noqa: A002
        """The keys of one event."""
        event = f"{source}\n{id}"
        return cls(f"{_PREFIX}upload:{_digest(upload)}", f"{_PREFIX}event:{_digest(event)}")


@dataclass(frozen=True, slots=True)
class TakenEvent:
    """An accepted event whose worker fell silent; it is the caller's from now on."""

    keys: EventKeys
    token: str
    event: str


class DedupStore:
    """Remembers events. Every call may raise `RecordStoreError`.

    Args:
        records: where they are kept. In memory, what is not finished can only be done when the
            broker delivers it again, so nothing is ever accepted.
    """

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    async def claim(self, keys: EventKeys, event: str, lease_s: float) -> Claim:
        """Ask to work on an event; the text of it is kept until it is finished."""
        token = secrets.token_hex(8)
        facts = milliseconds(lease_s), milliseconds(KEEP_S), keys.event, event
        left_ms, found = await self._records.decide("claim", keys.upload, token, *facts)
        if not found:
            return Claim(EventState.MINE, token)
        record = fields(found)
        state, result = EventState(record["state"]), record.get("result", "")
        return Claim(state, result=result, left_s=int(left_ms) / 1e3)

    async def renew(self, keys: EventKeys, token: str, lease_s: float) -> bool:
        """Keep a claim; whether it is still the caller's."""
        lease_ms = milliseconds(lease_s)
        return await self._records.decide("renew", keys.upload, token, lease_ms) == [1]

    async def accept(self, keys: EventKeys, token: str) -> bool:
        """Promise that it will be done, by whoever finds it when the lease runs out."""
        if not self._records.lasting:
            return False
        return await self._records.decide("accept", keys.upload, token) == [1]

    async def finish(self, keys: EventKeys, result: str, keep_s: float = KEEP_S) -> None:
        """Remember for so long what became of it, whoever holds the claim."""
        keep_ms, record = milliseconds(keep_s), words({"state": EventState.DONE, "result": result})
        await self._records.decide("settle", keys.upload, "", keep_ms, keys.event, *record)

    async def release(self, keys: EventKeys, token: str) -> None:
        """Give a claim up; what was accepted can be taken by anybody at once."""
        await self._records.decide("release", keys.upload, token, 0, 0)

    async def take(self, lease_s: float) -> TakenEvent | None:
        """An accepted event that nobody works on any more."""
        token = secrets.token_hex(8)
        state = EventState.ACCEPTED
        found = await self._records.decide("take", "", token, milliseconds(lease_s), state)
        if not found:
            return None
        upload, record = found[0], fields(found[1])
        return TakenEvent(EventKeys(upload, record["alias"]), token, record["event"])

    async def close(self) -> None:
        """Close all connections."""
        await self._records.close()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
