"""Records in this process: for one replica, and gone with it. It decides as `records.lua` does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from function.background.records import BY_HOLDERS, fields, words
from function.request_context import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST_SETTLED = 20_000
"""How many records of events are kept at most; of more, the one that was settled first goes."""

_SWEEP_MS = 60_000


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

    async def decide(
        self, what: str, name: str = "", token: str = "", *facts: str | int
    ) -> list[Any]:
        """The answer of the method of that name, which takes a name and a token if there are."""
        texts = list(map(str, facts))
        if what in BY_HOLDERS:
            return [int(self._held(what, name, token, *texts))]
        given = [each for each in (name, token) if each]
        answer: list[Any] = getattr(self, f"_{what}")(*given, *texts)
        return answer

    async def nearly_full(self) -> bool:
        """Never."""
        return False

    async def close(self) -> None:
        """Nothing is open."""

    def _get(self, name: str) -> list[str]:
        return words(self._records.get(name, {}))

    def _take(self, token: str, lease: str, state: str, *lanes: str) -> list[Any]:
        name = _first(self._leases.items(), self._clock()) or self._dequeued(lanes)
        if name is None:
            return []
        record = self._records[name]
        record |= {"state": state, "token": token, "tries": str(int(record.get("tries", 0)) + 1)}
        self._lease(name, lease)
        self._change(name)
        return [name, words(record)]

    def _claim(self, name: str, token: str, *facts: str) -> list[Any]:
        lease, keep, alias, event = facts
        now = self._clock()
        self._sweep(now)
        for each in (name, self._aliases.get(alias, name)):
            if self._expire.get(each, 0) <= now:
                continue
            record = self._records[each]
            left = int(record.get("until", 0)) - now
            if record["state"] == "done" or left > 0:
                return [left, words(record)]
            if record["state"] == "accepted":  # its worker is gone: whoever asks goes on with it
                record["token"] = token
                self._lease(each, lease)
                return [0, []]
        kept = {"keep": keep, "alias": alias, "event": event}
        self._records[name] = {"state": "running", "token": token} | kept
        self._lease(name, lease)
        self._aliases[alias] = name
        return [0, []]

    def _settle(self, name: str, keep: str, alias: str, *changes: str) -> list[Any]:
        self._forget(name)  # so that it is the last in the order of settling
        self._records[name] = fields(changes)
        self._aliases[alias] = name
        self._expire[name] = self._clock() + int(keep)
        if len(self._records) > MOST_SETTLED:
            settled = (each for each, record in self._records.items() if record["state"] == "done")
            self._forget(next(settled))
        return [1]

    def _open(self, name: str, *facts: str) -> list[Any]:
        lane, head_start, owner, limit, keep, *changes = facts
        if known := self._records.get(name):
            return ["old", words(known)]
        if len(self._leases) + sum(map(len, self._queues.values())) >= int(limit):
            return ["full", []]
        now = self._clock()
        record = {"state": "queued", "version": "1", "tries": "0", "token": "", "changed": str(now)}
        record |= {"ends": str(now + int(keep)), "lane": lane, "owner": owner, **fields(changes)}
        self._records[name] = record
        self._queues[lane][name] = now + int(head_start)
        self._created[name] = now
        return ["new", words(record)]

    def _end(self, name: str, keep: str) -> list[Any]:
        if not (record := self._records.get(name)):
            return ["", []]
        before = record["state"]
        if before in {"queued", "running"}:
            self._finish(name, "cancelled", keep)
        elif before != "deleted":
            for field in [each for each in record if each.startswith("item:")]:
                del record[field]
            record["state"] = "deleted"
            self._calls.pop(name, None)
            self._change(name)
        return [before, words(record)]

    def _call(self, lease: str) -> list[str]:
        now = self._clock()
        if (name := _first(self._calls.items(), now)) is None:
            return []
        self._calls[name] = now + int(lease)
        record = self._records[name]
        record["calls"] = str(int(record.get("calls", 0)) + 1)
        return words(record)

    def _called(self, name: str, again: str, *changes: str) -> list[int]:
        if self._calls.pop(name, None) is None:
            return [0]
        self._records[name] |= fields(changes)
        if again:
            self._calls[name] = self._clock() + int(again)
        self._change(name)
        return [1]

    def _changed(self, *known: str) -> list[Any]:
        found: list[Any] = []
        for name, version in fields(known).items():
            record = self._records.get(name, {})
            if record.get("version") != version:
                found += [name, words(record)]
        return found

    def _of(self, owner: str, start: str, count: str) -> list[Any]:
        newest = sorted(self._created, key=self._created.__getitem__, reverse=True)
        records = (self._records[name] for name in newest)
        found = [each for each in records if owner in {"", each["owner"]}]
        return [words(each) for each in found[int(start) : int(start) + int(count)]]

    def _over(self, count: str) -> list[Any]:
        now, records = self._clock(), (self._records[name] for name in self._created)
        return [words(each) for each in records if int(each["ends"]) <= now][: int(count)]

    def _forget(self, name: str) -> list[int]:
        self._records.pop(name, None)
        lists = self._leases, self._calls, self._created, self._expire
        for each in (*lists, *self._queues.values()):
            each.pop(name, None)
        return [1]

    def _ahead(self, name: str) -> list[int]:
        came = {name: at for queue in self._queues.values() for name, at in queue.items()}
        return [sum(at < came[name] for at in came.values())] if name in came else []

    def _counts(self) -> list[int]:
        return [sum(map(len, self._queues.values())), len(self._leases), len(self._calls)]

    def _held(self, what: str, name: str, token: str, *facts: str) -> bool:
        """Decide what only the holder may; whether the caller is that, or has finished the job."""
        record = self._records.get(name, {})
        if token and what == "finish" and record.get("finisher") == token:
            return True
        if not token or record.get("token") != token:
            return False
        match what:
            case "renew":
                self._lease(name, facts[0])
            case "accept":
                record["state"] = "accepted"
                self._leases[name] = int(record["until"])
            case "mark":
                record |= fields(facts)
                self._change(name)
            case "finish":
                record |= {**fields(facts[2:]), "finisher": token}
                self._finish(name, facts[1], facts[0])
            case "release" if name in self._leases:
                tries = str(int(record.get("tries", 0)) + int(facts[1]))
                record |= {**fields(facts[2:]), "token": "", "tries": tries}
                self._lease(name, facts[0])
                self._change(name)
            case _:
                self._forget(name)  # a claim of which nothing was promised
        return True

    def _lease(self, name: str, lease: str) -> None:
        now, record = self._clock(), self._records[name]
        record["until"] = str(now + int(lease))
        if name in self._leases:
            self._leases[name] = int(record["until"])
        if "keep" in record:
            self._expire[name] = now + int(record["keep"])

    def _dequeued(self, lanes: Iterable[str]) -> str | None:
        """The first job of these lanes, which leaves its queue for the leases."""
        waiting = [item for lane in lanes for item in self._queues[lane].items()]
        if (name := _first(waiting)) is not None:
            del self._queues[self._records[name]["lane"]][name]
            self._leases[name] = self._clock()
        return name

    def _finish(self, name: str, state: str, keep: str) -> None:
        now, record = self._clock(), self._records[name]
        record |= {"state": state, "token": "", "ends": str(now + int(keep))}
        self._leases.pop(name, None)
        self._queues[record["lane"]].pop(name, None)
        if record.get("callback") == "1":
            record["call"], self._calls[name] = "pending", now
        self._change(name)

    def _change(self, name: str) -> None:
        record = self._records[name]
        version = int(record.get("version", 0)) + 1
        record |= {"version": str(version), "changed": str(self._clock())}

    def _sweep(self, now: int) -> None:
        """Now and then forget the events whose time has run out."""
        if now < self._sweep_at:
            return
        self._sweep_at = now + _SWEEP_MS
        for name in [name for name, at in self._expire.items() if at <= now]:
            self._forget(name)
        self._aliases = {key: name for key, name in self._aliases.items() if name in self._records}


def _first(times: Iterable[tuple[str, int]], until: float = float("inf")) -> str | None:
    """The name with the earliest time, if that is no later than `until`."""
    name, at = min(times, key=lambda each: each[1], default=(None, 0))
    return name if at <= until else None
