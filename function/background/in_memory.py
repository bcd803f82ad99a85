"""Records in this process: for one replica, and gone with it. It decides as `records.lua` does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from function.background.records import Fields, milliseconds
from function.request_context import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

MOST_SETTLED = 20_000
"""How many records of events are kept at most; of more, the one that was settled first goes."""

_SWEEP_MS = 60_000
_OPEN = {"queued", "running"}


class InMemoryRecords:
    """Keeps records in this process.

    Args:
        clock: milliseconds of Unix time.
    """

    lasting = False

    def __init__(self, clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._clock = clock
        self._records: dict[str, dict[str, str]] = {}
        self._aliases: dict[str, str] = {}
        self._expire: dict[str, int] = {}  # when a record of an event is forgotten
        self._leases: dict[str, int] = {}  # when what is taken over then runs out
        self._queues: dict[str, dict[str, int]] = {lane: {} for lane in Lane}
        self._calls: dict[str, int] = {}  # when a callback is due
        self._created: dict[str, int] = {}
        self._sweep_at = 0

    def __len__(self) -> int:
        return len(self._records) + len(self._aliases)

    async def get(self, name: str) -> Fields:
        return dict(self._records.get(name, {}))

    async def take(
        self, token: str, lease_s: float, state: str, lanes: Sequence[Lane] = ()
    ) -> tuple[str, Fields] | None:
        name = _first(self._leases.items(), self._clock()) or self._dequeued(lanes)
        if name is None:
            return None
        record = self._records[name]
        record |= {"state": state, "token": token, "tries": str(int(record.get("tries", 0)) + 1)}
        self._lease(name, lease_s)
        self._changed(name)
        return name, dict(record)

    async def renew(self, name: str, token: str, lease_s: float) -> bool:
        if held := self._holds(name, token):
            self._lease(name, lease_s)
        return held

    async def release(
        self,
        name: str,
        token: str,
        again_s: float = 0.0,
        fields: Fields | None = None,
        *,
        tried: bool = True,
    ) -> bool:
        if not self._holds(name, token):
            return False
        if name not in self._leases:
            self._delete(name)
            return True
        record = self._records[name]
        tries = int(record.get("tries", 0)) - (not tried)
        record |= {**(fields or {}), "token": "", "tries": str(tries)}
        self._lease(name, again_s)
        self._changed(name)
        return True

    async def claim(
        self, name: str, alias: str, token: str, event: str, *, lease_s: float, keep_s: float
    ) -> tuple[Fields, float]:
        now = self._clock()
        self._sweep(now)
        for each in (name, self._aliases.get(alias, name)):
            if self._expire.get(each, 0) <= now:
                continue
            record = self._records[each]
            left_ms = int(record.get("until", 0)) - now
            if record["state"] == "done" or left_ms > 0:
                return dict(record), left_ms / 1e3
            if record["state"] == "accepted":  # its worker is gone: whoever asks goes on with it
                record["token"] = token
                self._lease(each, lease_s)
                return {}, 0.0
        fields = {"keep": str(milliseconds(keep_s)), "alias": alias, "event": event}
        self._records[name] = {"state": "running", "token": token} | fields
        self._lease(name, lease_s)
        self._aliases[alias] = name
        return {}, 0.0

    async def accept(self, name: str, token: str) -> bool:
        if held := self._holds(name, token):
            self._records[name]["state"] = "accepted"
            self._leases[name] = int(self._records[name]["until"])
        return held

    async def settle(self, name: str, alias: str, fields: Fields, keep_s: float) -> None:
        self._delete(name)  # so that it is the last in the order of settling
        self._records[name] = dict(fields)
        self._aliases[alias] = name
        self._expire[name] = self._clock() + milliseconds(keep_s)
        if len(self._records) > MOST_SETTLED:
            settled = (each for each, record in self._records.items() if record["state"] == "done")
            self._delete(next(settled))

    async def open(
        self, name: str, lane: Lane, head_start_s: float, owner: str, fields: Fields,
        *, limit: int, keep_s: float,
    ) -> tuple[str, Fields]:  # fmt: skip
        if known := self._records.get(name):
            return "old", dict(known)
        if len(self._leases) + sum(map(len, self._queues.values())) >= limit:
            return "full", {}
        now = self._clock()
        times = {"changed": str(now), "ends": str(now + milliseconds(keep_s))}
        record = {"state": "queued", "version": "1", "tries": "0", "token": "", **times}
        self._records[name] = record | {"lane": lane, "owner": owner, **fields}
        self._queues[lane][name] = now + milliseconds(head_start_s)
        self._created[name] = now
        return "new", dict(self._records[name])

    async def mark(self, name: str, token: str, fields: Fields) -> bool:
        if held := self._holds(name, token):
            self._records[name] |= fields
            self._changed(name)
        return held

    async def finish(
        self, name: str, token: str, state: str, fields: Fields, keep_s: float
    ) -> bool:
        if self._holds(name, token):
            self._records[name] |= {**fields, "finisher": token}
            self._close(name, state, keep_s)
        return token != "" and self._records.get(name, {}).get("finisher") == token

    async def end(self, name: str, keep_s: float) -> tuple[str, Fields]:
        if not (record := self._records.get(name)):
            return "", {}
        before = record["state"]
        if before in _OPEN:
            self._close(name, "cancelled", keep_s)
        elif before != "deleted":
            for field in [each for each in record if each.startswith("item:")]:
                del record[field]
            record["state"] = "deleted"
            self._calls.pop(name, None)
            self._changed(name)
        return before, dict(record)

    async def call(self, lease_s: float) -> Fields:
        now = self._clock()
        if (name := _first(self._calls.items(), now)) is None:
            return {}
        self._calls[name] = now + milliseconds(lease_s)
        record = self._records[name]
        record["calls"] = str(int(record.get("calls", 0)) + 1)
        return dict(record)

    async def called(self, name: str, fields: Fields, again_s: float | None) -> None:
        if self._calls.pop(name, None) is None:
            return
        self._records[name] |= fields
        if again_s is not None:
            self._calls[name] = self._clock() + milliseconds(again_s)
        self._changed(name)

    async def changed(self, known: Mapping[str, int]) -> dict[str, Fields]:
        found = {name: dict(self._records.get(name, {})) for name in known}
        return {
            name: record
            for name, record in found.items()
            if record.get("version") != str(known[name])
        }

    async def of(self, owner: str | None, start: int, count: int) -> list[Fields]:
        newest = sorted(self._created, key=self._created.__getitem__, reverse=True)
        records = (self._records[name] for name in newest)
        found = [each for each in records if owner in {None, each["owner"]}]
        return [dict(each) for each in found[start : start + count]]

    async def over(self) -> list[Fields]:
        now, records = self._clock(), (self._records[name] for name in self._created)
        return [dict(each) for each in records if int(each["ends"]) <= now]

    async def forget(self, name: str) -> None:
        self._delete(name)

    async def ahead(self, name: str) -> int | None:
        came = {name: at for queue in self._queues.values() for name, at in queue.items()}
        return sum(at < came[name] for at in came.values()) if name in came else None

    async def counts(self) -> tuple[int, int, int]:
        return sum(map(len, self._queues.values())), len(self._leases), len(self._calls)

    async def nearly_full(self) -> bool:
        return False

    async def close(self) -> None:
        pass

    def _holds(self, name: str, token: str) -> bool:
        return token != "" and self._records.get(name, {}).get("token") == token

    def _lease(self, name: str, lease_s: float) -> None:
        now, record = self._clock(), self._records[name]
        record["until"] = str(now + milliseconds(lease_s))
        if name in self._leases:
            self._leases[name] = int(record["until"])
        if "keep" in record:
            self._expire[name] = now + int(record["keep"])

    def _dequeued(self, lanes: Iterable[Lane]) -> str | None:
        """The first job of these lanes, which leaves its queue for the leases."""
        waiting = [item for lane in lanes for item in self._queues[lane].items()]
        if (name := _first(waiting)) is not None:
            del self._queues[self._records[name]["lane"]][name]
            self._leases[name] = self._clock()
        return name

    def _close(self, name: str, state: str, keep_s: float) -> None:
        now, record = self._clock(), self._records[name]
        record |= {"state": state, "token": "", "ends": str(now + milliseconds(keep_s))}
        self._leases.pop(name, None)
        self._queues[record["lane"]].pop(name, None)
        if record.get("callback") == "1":
            record["call"], self._calls[name] = "pending", now
        self._changed(name)

    def _changed(self, name: str) -> None:
        record = self._records[name]
        version = int(record.get("version", 0)) + 1
        record |= {"version": str(version), "changed": str(self._clock())}

    def _delete(self, name: str) -> None:
        self._records.pop(name, None)
        lists = self._leases, self._calls, self._created, self._expire
        for each in (*lists, *self._queues.values()):
            each.pop(name, None)

    def _sweep(self, now: int) -> None:
        """Now and then forget the events whose time has run out."""
        if now < self._sweep_at:
            return
        self._sweep_at = now + _SWEEP_MS
        for name in [name for name, at in self._expire.items() if at <= now]:
            self._delete(name)
        self._aliases = {key: name for key, name in self._aliases.items() if name in self._records}


def _first(times: Iterable[tuple[str, int]], until: float = float("inf")) -> str | None:
    """The name with the earliest time, if that is no later than `until`."""
    name, at = min(times, key=lambda each: each[1], default=(None, 0))
    return name if at <= until else None
