"""A job while its lease is ours: what is put down about it gets through, or the lease is over."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.background.records import RecordStoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from function.background.jobs.job import Job, JobItem, JobState
    from function.background.jobs.store import JobStore

log = logging.getLogger("ember.jobs")


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job and what proves that it is ours.

    All that returns a bool returns whether it still is. While the store is silent, it is asked
    again for as long as the lease lasts.

    Attributes:
        job: as it was when it was taken.
        token: the proof.
        store: has it.
        lease_s: how long a lease lasts.
    """

    job: Job
    token: str
    store: JobStore
    lease_s: float

    async def renew(self) -> bool:
        """Have the lease start anew; asks once, and raises `RecordStoreError` where that fails."""
        return await self.store.renew(self.job.spec.key, self.token, self.lease_s)

    async def mark(self, index: int, item: JobItem) -> bool:
        """Put down how far one target is."""
        return await self._stored(
            lambda: self.store.mark(self.job.spec.key, self.token, index, item)
        )

    async def release(self, again_s: float | None, items: Sequence[JobItem] = ()) -> bool:
        """Give the job up; see `JobStore.release`."""
        return await self._stored(
            lambda: self.store.release(self.job.spec.key, self.token, again_s, items)
        )

    async def finish(self, state: JobState, items: Sequence[JobItem], keep_s: float) -> bool:
        """Put down that it has ended, with all of its targets."""
        return await self._stored(
            lambda: self.store.finish(self.job.spec.key, self.token, state, items, keep_s)
        )

    async def _stored(self, change: Callable[[], Awaitable[bool]]) -> bool:
        until = time.monotonic() + self.lease_s
        while True:
            try:
                return await change()
            except RecordStoreError as error:
                log.warning("the book of jobs cannot be told", extra={"reason": str(error)})
                if time.monotonic() >= until:
                    return False
            await asyncio.sleep(random.uniform(0.1, 0.5))  # noqa: S311 (so that not all ask at once)
