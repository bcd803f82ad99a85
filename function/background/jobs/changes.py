"""Changes of jobs for all who listen to them, found with one question to the store."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from function.background.records import RecordStoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from function.background.jobs.job import Job
    from function.background.jobs.store import JobStore

log = logging.getLogger("ember.jobs")

_LOOK_S = 0.5


class WatchedJob:
    """A job that somebody listens to.

    Args:
        job: as it is now.
        render: makes the message about a state of the job.

    Attributes:
        job: as it is now; None when it was forgotten.
        listeners: how many listen.
    """

    def __init__(self, job: Job, render: Callable[[Job], Awaitable[bytes]]) -> None:
        self.job: Job | None = job
        self.listeners = 0
        self._render = render
        self._changed = asyncio.Event()
        self._message: asyncio.Future[bytes] | None = None

    def change(self, job: Job | None) -> None:
        """Put in the job as it is now; None when it was forgotten."""
        self.job, self._message = job, None
        self.wake()

    def wake(self) -> None:
        """Have `wait` return for all who listen."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def message(self, job: Job) -> bytes:
        """The message about a state of the job, made once for all who listen."""
        if job is not self.job:
            return await self._render(job)
        if self._message is None or self._message.cancelled():
            self._message = asyncio.ensure_future(self._render(job))
        return await asyncio.shield(self._message)

    async def wait(self, limit_s: float) -> None:
        """Wait until there may be something new, and no longer than that."""
        changed = self._changed
        try:
            async with asyncio.timeout(limit_s):
                await changed.wait()
        except TimeoutError:
            pass


class Changes:
    """Looks twice a second for what has changed of all jobs that anybody listens to.

    Args:
        store: has the jobs.
        render: makes the message about a state of a job.
        leaving: whether the replica ends, so that nobody is to listen any more.
    """

    def __init__(
        self,
        store: JobStore,
        render: Callable[[Job], Awaitable[bytes]],
        leaving: Callable[[], bool],
    ) -> None:
        self._store, self._render, self._leaving = store, render, leaving
        self._watched: dict[str, WatchedJob] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def listen(self, job: Job) -> Iterator[WatchedJob]:
        """Listen to a job while the body runs."""
        key = job.spec.key
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = WatchedJob(job, self._render)
        elif watched.job is None or watched.job.version < job.version:
            watched.change(job)
        watched.listeners += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            yield watched
        finally:
            watched.listeners -= 1
            if not watched.listeners and self._watched.get(key) is watched:
                del self._watched[key]

    async def _look(self) -> None:
        """Look again and again while anybody listens."""
        try:
            while self._watched:
                await asyncio.sleep(_LOOK_S)
                if self._leaving():
                    for each in self._watched.values():
                        each.wake()
                    continue
                known = {key: each.job.version for key, each in self._watched.items() if each.job}
                try:
                    found = await self._store.changed(known)
                except RecordStoreError as error:
                    log.warning("jobs cannot be looked at", extra={"reason": str(error)})
                    continue
                except Exception:
                    log.exception("looking at jobs failed")
                    continue
                for key, job in found.items():
                    if watched := self._watched.get(key):
                        watched.change(job)
        finally:
            self._looking = None
