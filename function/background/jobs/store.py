"""Who works on which job, and how far it is: a view of records."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.background.jobs.job import CallbackState, Job, JobState
from function.background.records import Namespace, fields, milliseconds, words
from function.request_context import Lane

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from function.background.jobs.job import JobItem, JobSpec
    from function.background.records import RecordStore

JOBS = Namespace("ember:{jobs}:", records="ember:{jobs}:job:", leases="running")

HEAD_START_S = {Lane.INTERACTIVE: 0.0, Lane.STANDARD: 5.0, Lane.BULK: 30.0}
"""By how much a job counts as later than it came: urgent ones go ahead, and nothing starves. A bulk
job that came at 0 s goes before an interactive one that comes at 31 s, not at 29 s."""

_AT_ONCE = 100


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


class JobStoreFullError(Exception):
    """No further job can be taken: as many are open, or there is too little `memory` left."""

    def __init__(self, *, memory: bool = False) -> None:
        super().__init__()
        self.memory = memory


class JobStore:
    """Keeps jobs. Every call may raise `RecordStoreError`.

    What takes a token changes nothing, and returns False, unless the token is that of the worker.

    Args:
        records: where they are kept.
    """

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    async def open(self, spec: JobSpec, limit: int, keep_s: float) -> OpenedJob:
        """Queue a job, unless its name is taken.

        Args:
            spec: the job.
            limit: how many jobs may be open.
            keep_s: after how long it is over, done or not.

        Raises:
            JobStoreFullError: there is no room for it.
        """
        if await self._records.nearly_full():
            raise JobStoreFullError(memory=True)
        record = {"spec": spec.text(), "callback": str(int(spec.callback is not None))}
        head_ms = milliseconds(HEAD_START_S[spec.lane])
        facts = spec.lane, head_ms, spec.owner, limit, milliseconds(keep_s)
        answer, found = await self._records.decide("open", spec.key, "", *facts, *words(record))
        if answer == "full":
            raise JobStoreFullError
        return OpenedJob(Job.of(fields(found)), new=answer == "new")

    async def get(self, key: str) -> Job | None:
        """A job; None where there is none."""
        return _job(await self._records.decide("get", key))

    async def changed(self, known: Mapping[str, int]) -> dict[str, Job | None]:
        """Of jobs whose version is known, those that have another now; None: there is none now."""
        pairs = [fact for pair in known.items() for fact in pair]
        found = await self._records.decide("changed", "", "", *pairs)
        return {key: _job(each) for key, each in zip(found[::2], found[1::2], strict=True)}

    async def of(self, owner: str | None, start: int, count: int) -> list[Job]:
        """Jobs of an owner, or of everybody, the newest first."""
        return _jobs(await self._records.decide("of", "", "", owner or "", start, count))

    async def take(self, lanes: Sequence[Lane], lease_s: float) -> TakenJob | None:
        """The next job: one whose worker fell silent, else a queued one of these lanes."""
        token = secrets.token_hex(8)
        lease_ms, state = milliseconds(lease_s), JobState.RUNNING
        found = await self._records.decide("take", "", token, lease_ms, state, *lanes)
        return TakenJob(Job.of(fields(found[1])), token) if found else None

    async def renew(self, key: str, token: str, lease_s: float) -> bool:
        """Keep a job."""
        return await self._records.decide("renew", key, token, milliseconds(lease_s)) == [1]

    async def mark(self, key: str, token: str, index: int, item: JobItem) -> bool:
        """Write down how far one target is."""
        return await self._records.decide("mark", key, token, f"item:{index}", item.text()) == [1]

    async def finish(
        self, key: str, token: str, state: JobState, items: Sequence[JobItem], keep_s: float
    ) -> bool:
        """Write down that it has ended, and how, with all its targets as they are now.

        From now on its callback is due. To say so twice is the same as once.
        """
        facts = milliseconds(keep_s), state
        return await self._records.decide("finish", key, token, *facts, *_words(items)) == [1]

    async def release(
        self, key: str, token: str, again_s: float | None, items: Sequence[JobItem] = ()
    ) -> bool:
        """Give it up, for anybody to take after that time; None: at once, and it was no try.

        Given items are written down as well.
        """
        facts = milliseconds(again_s or 0.0), -1 if again_s is None else 0
        changes = "state", JobState.QUEUED, *_words(items)
        return await self._records.decide("release", key, token, *facts, *changes) == [1]

    async def end(self, key: str, keep_s: float) -> EndedJob | None:
        """Cancel it if it is open, else delete what came of it; None where there is no such job."""
        before, found = await self._records.decide("end", key, "", milliseconds(keep_s))
        return EndedJob(Job.of(fields(found)), JobState(before)) if found else None

    async def call(self, lease_s: float) -> Job | None:
        """A job whose callback is due; nobody else gets it for so long."""
        return _job(await self._records.decide("call", "", "", milliseconds(lease_s)))

    async def called(self, key: str, state: CallbackState, note: str, again_s: float) -> None:
        """Write down what became of a callback; `PENDING` is due again after that time."""
        again = milliseconds(again_s) if state is CallbackState.PENDING else ""
        changes = words({"call": state, "call_note": note})
        await self._records.decide("called", key, "", again, *changes)

    async def over(self) -> list[Job]:
        """Some jobs whose time is over."""
        return _jobs(await self._records.decide("over", "", "", _AT_ONCE))

    async def forget(self, key: str) -> None:
        """Delete a job from everywhere."""
        await self._records.decide("forget", key)

    async def ahead(self, key: str) -> int | None:
        """How many jobs come before a queued one; None when it is not queued."""
        found = await self._records.decide("ahead", key)
        return int(found[0]) if found else None

    async def counts(self) -> dict[str, int]:
        """How many jobs are `queued`, `running`, and have a callback `due`."""
        found = await self._records.decide("counts")
        return dict(zip(("queued", "running", "due"), map(int, found), strict=True))

    async def close(self) -> None:
        """Close all connections."""
        await self._records.close()


def _job(found: list[str]) -> Job | None:
    return Job.of(fields(found)) if found else None


def _jobs(found: list[list[str]]) -> list[Job]:
    return [Job.of(fields(each)) for each in found if each]


def _words(items: Sequence[JobItem]) -> list[str]:
    return words({f"item:{index}": item.text() for index, item in enumerate(items)})
