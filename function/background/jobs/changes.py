"""Who wants to know of each change of a job: one look at the book for all who listen."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from function.background.records import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from function.background.jobs.job import Job
    from function.background.jobs.store import JobStore

log = logging.getLogger("ember.jobs")

_LOOK_S = 0.5


class Watched:
    """A job that somebody listens to.

    Args:
        job: it, as it is now.
        tell: puts into words how far a job is.

    Attributes:
        job: likewise; None when it was forgotten.
        listeners: how many listen.
    """

    def __init__(self, job: Job, tell: Callable[[Job], Awaitable[bytes]]) -> None:
        self.job: Job | None = job
        self.listeners = 0
        self._tell = tell
        self._changed = asyncio.Event()
        self._told: asyncio.Future[bytes] | None = None

    def change(self, job: Job | None) -> None:
        """It is another now."""
        self.job, self._told = job, None
        self.wake()

    def wake(self) -> None:
        """Have all who listen look."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def told(self, job: Job) -> bytes:
        """How far it is, in words; once for all who listen."""
        if job is not self.job:
            return await self._tell(job)
        if self._told is None or self._told.cancelled():
            self._told = asyncio.ensure_future(self._tell(job))
        return await asyncio.shield(self._told)

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
        book: has the jobs.
        tell: see `Watched`.
        leaving: says that the replica ends, so that nobody is to listen any more.
    """

    def __init__(
        self,
        book: JobStore,
        tell: Callable[[Job], Awaitable[bytes]],
        leaving: Callable[[], bool],
    ) -> None:
        self._book, self._tell, self._leaving = book, tell, leaving
        self._watched: dict[str, Watched] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def listen(self, job: Job) -> Iterator[Watched]:
        """Listen to a job while the body runs."""
        key = job.spec.key
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = Watched(job, self._tell)
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
                    found = await self._book.changed(known)
                except StoreError as error:
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
