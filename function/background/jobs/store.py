"""Who works on which job, and how far it is: a view of records."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.background.jobs.job import CallbackState, Job, JobState
from function.background.records import Namespace
from function.request_context import Lane

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from function.background.jobs.job import JobItem, JobSpec
    from function.background.records import Fields, RecordStore

JOBS = Namespace("ember:{jobs}:", records="ember:{jobs}:job:", leases="running")

HEAD_START_S = {Lane.INTERACTIVE: 0.0, Lane.STANDARD: 5.0, Lane.BULK: 30.0}
"""By how much a job counts as later than it came: urgent ones go ahead, and nothing starves. A bulk
job that came at 0 s goes before an interactive one that comes at 31 s, not at 29 s."""


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
    """Keeps jobs. Every call may raise `StoreError`.

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
        fields = {"spec": spec.text(), "callback": str(int(spec.callback is not None))}
        answer, found = await self._records.open(
            spec.key,
            spec.lane,
            HEAD_START_S[spec.lane],
            spec.owner,
            fields,
            limit=limit,
            keep_s=keep_s,
        )
        if answer == "full":
            raise JobStoreFullError
        return OpenedJob(Job.of(found), new=answer == "new")

    async def get(self, key: str) -> Job | None:
        """A job; None where there is none."""
        return _job(await self._records.get(key))

    async def changed(self, known: Mapping[str, int]) -> dict[str, Job | None]:
        """Of jobs whose version is known, those that have another now; None: there is none now."""
        found = await self._records.changed(known)
        return {key: _job(fields) for key, fields in found.items()}

    async def of(self, owner: str | None, start: int, count: int) -> list[Job]:
        """Jobs of an owner, or of everybody, the newest first."""
        return [Job.of(each) for each in await self._records.of(owner, start, count)]

    async def take(self, lanes: Sequence[Lane], lease_s: float) -> TakenJob | None:
        """The next job: one whose worker fell silent, else a queued one of these lanes."""
        token = secrets.token_hex(8)
        found = await self._records.take(token, lease_s, JobState.RUNNING, lanes)
        return TakenJob(Job.of(found[1]), token) if found else None

    async def renew(self, key: str, token: str, lease_s: float) -> bool:
        """Keep a job."""
        return await self._records.renew(key, token, lease_s)

    async def mark(self, key: str, token: str, index: int, item: JobItem) -> bool:
        """Write down how far one target is."""
        return await self._records.mark(key, token, {f"item:{index}": item.text()})

    async def finish(
        self, key: str, token: str, state: JobState, items: Sequence[JobItem], keep_s: float
    ) -> bool:
        """Write down that it has ended, and how, with all its targets as they are now.

        From now on its callback is due. To say so twice is the same as once.
        """
        return await self._records.finish(key, token, state, _items(items), keep_s)

    async def release(
        self, key: str, token: str, again_s: float | None, items: Sequence[JobItem] = ()
    ) -> bool:
        """Give it up, for anybody to take after that time; None: at once, and it was no try.

        Given items are written down as well.
        """
        fields = {"state": JobState.QUEUED, **_items(items)}
        tried = again_s is not None
        return await self._records.release(key, token, again_s or 0.0, fields, tried=tried)

    async def end(self, key: str, keep_s: float) -> EndedJob | None:
        """Cancel it if it is open, else delete what came of it; None where there is no such job."""
        before, found = await self._records.end(key, keep_s)
        return EndedJob(Job.of(found), JobState(before)) if found else None

    async def call(self, lease_s: float) -> Job | None:
        """A job whose callback is due; nobody else gets it for so long."""
        return _job(await self._records.call(lease_s))

    async def called(self, key: str, state: CallbackState, note: str, again_s: float) -> None:
        """Write down what became of a callback; `PENDING` is due again after that time."""
        fields = {"call": state, "call_note": note}
        pending = state is CallbackState.PENDING
        await self._records.called(key, fields, again_s if pending else None)

    async def over(self) -> list[Job]:
        """Some jobs whose time is over."""
        return [Job.of(each) for each in await self._records.over()]

    async def forget(self, key: str) -> None:
        """Delete a job from everywhere."""
        await self._records.forget(key)

    async def ahead(self, key: str) -> int | None:
        """How many jobs come before a queued one; None when it is not queued."""
        return await self._records.ahead(key)

    async def counts(self) -> dict[str, int]:
        """How many jobs are `queued`, `running`, and have a callback `due`."""
        queued, running, due = await self._records.counts()
        return {"queued": queued, "running": running, "due": due}

    async def close(self) -> None:
        """Close all connections."""
        await self._records.close()


def _job(fields: Fields) -> Job | None:
    return Job.of(fields) if fields else None


def _items(items: Sequence[JobItem]) -> dict[str, str]:
    return {f"item:{index}": item.text() for index, item in enumerate(items)}
