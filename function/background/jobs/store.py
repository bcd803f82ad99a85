"""The book of jobs: who works on what, and how far it is.

What every book can do, and the one in memory. `book.lua` does the same inside Redis.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from function.background.jobs.job import Call, Job, JobItem, JobState
from function.request_context import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from function.background.jobs.job import JobSpec

HEAD_START_MS = {Lane.INTERACTIVE: 0, Lane.STANDARD: 5_000, Lane.BULK: 30_000}
"""By how much a job counts as later than it came: who is urgent goes ahead, and nobody starves."""


@dataclass(frozen=True, slots=True)
class OpenedJob:
    """The answer to a new job: itself, or the one of that name that there is already."""

    job: Job
    new: bool


@dataclass(frozen=True, slots=True)
class TakenJob:
    """A job that is the taker's until its lease ends; the token proves it."""

    job: Job
    token: str


@dataclass(frozen=True, slots=True)
class EndedJob:
    """How a wish to end a job changed it: `before` is the state before; `job` is after."""

    job: Job
    before: JobState


class JobStore(Protocol):
    """Keeps jobs. Every call may raise `JobStoreError`.

    What names a token changes nothing, and says so, unless the token is that of who works on it.
    """

    async def open(self, spec: JobSpec, limit: int, keep_s: float) -> OpenedJob:
        """Write a job down, unless its name is taken.

        Args:
            spec: the job.
            limit: how many jobs may be open.
            keep_s: after how long it is over, done or not.

        Raises:
            FullError: as many are.
        """
        ...

    async def get(self, key: str) -> Job | None:
        """A job."""
        ...

    async def changed(self, known: Mapping[str, int]) -> dict[str, Job | None]:
        """Of jobs whose version is known, those that have another now; None: there is none now."""
        ...

    async def of(self, owner: str | None, start: int, count: int) -> list[Job]:
        """Jobs of an owner, or of everybody, the newest first."""
        ...

    async def take(self, lanes: Sequence[Lane], lease_s: float) -> TakenJob | None:
        """The job that is next, of these lanes: one whose worker fell silent, else a queued one."""
        ...

    async def renew(self, key: str, token: str, lease_s: float) -> bool:
        """Keep a job."""
        ...

    async def mark(self, key: str, token: str, place: int, item: JobItem) -> bool:
        """Write down how far one target is."""
        ...

    async def finish(
        self, key: str, token: str, state: JobState, items: Sequence[JobItem], keep_s: float
    ) -> bool:
        """Write down that it has ended, and how, with all its targets as they are now.

        From now on its callback is due. To say so twice is the same as once.
        """
        ...

    async def release(
        self, key: str, token: str, again_s: float | None, items: Sequence[JobItem] = ()
    ) -> bool:
        """Give it up, for anybody to take after that time; None: at once, and it was no try.

        Where its targets are told, they are written down as well.
        """
        ...

    async def end(self, key: str, keep_s: float) -> EndedJob | None:
        """Cancel it if it is open, else delete what came of it; None where there is no such job."""
        ...

    async def call(self, lease_s: float) -> Job | None:
        """A job whose callback is due; nobody else gets it meanwhile."""
        ...

    async def called(self, key: str, call: Call, note: str, again_s: float) -> None:
        """Write down what became of a callback; `PENDING` is due again after that time."""
        ...

    async def over(self) -> list[Job]:
        """Some jobs whose time is over."""
        ...

    async def forget(self, key: str) -> None:
        """Strike a job out."""
        ...

    async def ahead(self, key: str) -> int | None:
        """How many jobs come before a queued one; None when it is not queued."""
        ...

    async def counts(self) -> dict[str, int]:
        """How many jobs are `queued`, `running`, and have a callback `due`."""
        ...

    async def close(self) -> None:
        """Close what it holds open."""
        ...


class JobStoreError(Exception):
    """The book cannot be asked."""


class JobStoreFullError(Exception):
    """No further job can be taken: as many are open, or there is too little `memory` left."""

    def __init__(self, *, memory: bool = False) -> None:
        super().__init__()
        self.memory = memory


@dataclass(slots=True)
class _Record:
    spec: JobSpec
    created: int
    changed: int
    ends: int
    state: JobState = JobState.QUEUED
    items: dict[int, JobItem] = field(default_factory=dict)
    version: int = 1
    tries: int = 0
    token: str = ""
    finisher: str = ""
    call: Call = Call.NONE
    calls: int = 0
    call_note: str = ""

    def job(self) -> Job:
        return Job(
            self.spec,
            self.state,
            tuple(self.items.get(place, JobItem()) for place in range(self.spec.targets)),
            self.version,
            self.changed / 1e3,
            self.ends / 1e3,
            self.tries,
            self.call,
            self.calls,
            self.call_note,
        )


class InMemoryJobStore:
    """Keeps jobs in this process: for one replica, and gone with it.

    Args:
        clock: milliseconds of Unix time.
    """

    def __init__(self, clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._clock = clock
        self._records: dict[str, _Record] = {}
        self._queued: dict[str, int] = {}  # when it counts as having come
        self._running: dict[str, int] = {}  # when its lease ends
        self._calls: dict[str, int] = {}  # when its callback is due

    async def open(self, spec: JobSpec, limit: int, keep_s: float) -> OpenedJob:
        """See `JobStore`."""
        if known := self._records.get(spec.key):
            return OpenedJob(known.job(), new=False)
        if len(self._queued) + len(self._running) >= limit:
            raise JobStoreFullError
        now = self._clock()
        record = self._records[spec.key] = _Record(spec, now, now, now + _ms(keep_s))
        self._queued[spec.key] = now + HEAD_START_MS[spec.lane]
        return OpenedJob(record.job(), new=True)

    async def get(self, key: str) -> Job | None:
        """See `JobStore`."""
        record = self._records.get(key)
        return record.job() if record else None

    async def changed(self, known: Mapping[str, int]) -> dict[str, Job | None]:
        """See `JobStore`."""
        found = {key: self._records.get(key) for key in known}
        return {
            key: record.job() if record else None
            for key, record in found.items()
            if record is None or record.version != known[key]
        }

    async def of(self, owner: str | None, start: int, count: int) -> list[Job]:
        """See `JobStore`."""
        found = [each for each in self._records.values() if owner in {None, each.spec.owner}]
        found.sort(key=lambda each: -each.created)
        return [each.job() for each in found[start : start + count]]

    async def take(self, lanes: Sequence[Lane], lease_s: float) -> TakenJob | None:
        """See `JobStore`."""
        now = self._clock()
        if (key := _first(self._running.items(), now)) is None:
            may = [
                (key, came)
                for key, came in self._queued.items()
                if self._records[key].spec.lane in lanes
            ]
            if (key := _first(may)) is None:
                return None
            del self._queued[key]
        record = self._records[key]
        record.state, record.token = JobState.RUNNING, secrets.token_hex(8)
        record.tries += 1
        self._running[key] = now + _ms(lease_s)
        self._changed(record)
        return TakenJob(record.job(), record.token)

    async def renew(self, key: str, token: str, lease_s: float) -> bool:
        """See `JobStore`."""
        if record := self._mine(key, token):
            self._running[key] = self._clock() + _ms(lease_s)
        return record is not None

    async def mark(self, key: str, token: str, place: int, item: JobItem) -> bool:
        """See `JobStore`."""
        if record := self._mine(key, token):
            record.items[place] = item
            self._changed(record)
        return record is not None

    async def finish(
        self, key: str, token: str, state: JobState, items: Sequence[JobItem], keep_s: float
    ) -> bool:
        """See `JobStore`."""
        if record := self._mine(key, token):
            record.items.update(enumerate(items))
            record.finisher = token
            self._close(record, state, keep_s)
        found = self._records.get(key)
        return found is not None and found.finisher == token != ""

    async def release(
        self, key: str, token: str, again_s: float | None, items: Sequence[JobItem] = ()
    ) -> bool:
        """See `JobStore`."""
        if record := self._mine(key, token):
            record.items.update(enumerate(items))
            record.state, record.token = JobState.QUEUED, ""
            record.tries -= again_s is None
            self._running[key] = self._clock() + _ms(again_s or 0)
            self._changed(record)
        return record is not None

    async def end(self, key: str, keep_s: float) -> EndedJob | None:
        """See `JobStore`."""
        if (record := self._records.get(key)) is None:
            return None
        before = record.state
        if before.open:
            self._close(record, JobState.CANCELLED, keep_s)
        elif before is not JobState.DELETED:
            record.state, record.items = JobState.DELETED, {}
            self._calls.pop(key, None)
            self._changed(record)
        return EndedJob(record.job(), before)

    async def call(self, lease_s: float) -> Job | None:
        """See `JobStore`."""
        now = self._clock()
        if (key := _first(self._calls.items(), now)) is None:
            return None
        self._calls[key] = now + _ms(lease_s)
        record = self._records[key]
        record.calls += 1
        return record.job()

    async def called(self, key: str, call: Call, note: str, again_s: float) -> None:
        """See `JobStore`."""
        if key not in self._calls:
            return
        del self._calls[key]
        record = self._records[key]
        record.call, record.call_note = call, note
        if call is Call.PENDING:
            self._calls[key] = self._clock() + _ms(again_s)
        self._changed(record)

    async def over(self) -> list[Job]:
        """See `JobStore`."""
        now = self._clock()
        return [each.job() for each in self._records.values() if each.ends <= now]

    async def forget(self, key: str) -> None:
        """See `JobStore`."""
        for each in (self._records, self._queued, self._running, self._calls):
            each.pop(key, None)

    async def ahead(self, key: str) -> int | None:
        """See `JobStore`."""
        if (mine := self._queued.get(key)) is None:
            return None
        return sum(came < mine for came in self._queued.values())

    async def counts(self) -> dict[str, int]:
        """See `JobStore`."""
        found = (self._queued, self._running, self._calls)
        return dict(zip(("queued", "running", "due"), map(len, found), strict=True))

    async def close(self) -> None:
        """See `JobStore`."""

    def _mine(self, key: str, token: str) -> _Record | None:
        record = self._records.get(key)
        return record if record and token and record.token == token else None

    def _close(self, record: _Record, state: JobState, keep_s: float) -> None:
        now, key = self._clock(), record.spec.key
        record.state, record.token, record.ends = state, "", now + _ms(keep_s)
        self._queued.pop(key, None)
        self._running.pop(key, None)
        if record.spec.callback:
            record.call, self._calls[key] = Call.PENDING, now
        self._changed(record)

    def _changed(self, record: _Record) -> None:
        record.version += 1
        record.changed = self._clock()


def _first(scores: Iterable[tuple[str, int]], until: float = float("inf")) -> str | None:
    """The key with the lowest score, if that is no higher than `until`."""
    key, score = min(scores, key=lambda each: each[1], default=("", until))
    return key if key and score <= until else None


def _ms(seconds: float) -> int:
    return int(seconds * 1e3)
