"""Takes jobs from the store when there is time for them, and deletes those whose time is over."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.background import lease
from function.background.jobs.callbacks import Callbacks
from function.background.jobs.files import JobFilesError
from function.background.jobs.held import HeldJob
from function.background.jobs.target import TargetWorker
from function.background.jobs.worker import JobWorker
from function.tasks import Running

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from function.admission.account import Receipt
    from function.background.jobs.files import JobFiles
    from function.background.jobs.job import Job, JobState
    from function.background.jobs.store import JobStore
    from function.request_context import Lane
    from function.requests import Swap
    from function.storage.storage import Storage

log = logging.getLogger("ember.jobs")

_LOOK_S = 1.0
_COUNT_S = 5.0
_SWEEP_S = 30.0


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """The limits of a job runner.

    Attributes:
        lease_s: after how long somebody else takes a job over when nothing is heard of its worker.
        keep_s: how long a job is kept after its end.
        slots: how many targets are worked on at once; other jobs hold no photos.
    """

    lease_s: float
    keep_s: float
    slots: int


class JobRunner:
    """Runs jobs.

    Args:
        store: has the jobs.
        files: has their photos.
        storage: where results go that have a place of their own, and callbacks.
        swap: makes a swap, when its turn has come.
        refund: gives back tokens of a subject.
        lanes: the lanes whose jobs may be begun with now.
        settings: its limits.

    Attributes:
        listeners: called with the state of each job that has ended here.
        watchers: called now and then with `JobStore.counts`, which are of all replicas.
    """

    def __init__(
        self,
        store: JobStore,
        files: JobFiles,
        *,
        storage: Storage,
        swap: Swap,
        refund: Callable[[str, Receipt], None],
        lanes: Callable[[], Sequence[Lane]],
        settings: RunnerSettings,
    ) -> None:
        self.store, self.files, self.settings = store, files, settings
        self._refund, self._lanes = refund, lanes
        kept_s = settings.keep_s + _SWEEP_S
        targets = TargetWorker(files, storage, swap, kept_s, settings.slots)
        self._worker = JobWorker(store, files, targets, settings.keep_s, self._ended)
        self._callbacks = Callbacks(store, files, storage, settings.lease_s)
        self._running = Running[None]()
        self._more = asyncio.Event()
        self._count_at = self._sweep_at = 0.0
        self.listeners: list[Callable[[JobState], None]] = []
        self.watchers: list[Callable[[Mapping[str, int]], None]] = []

    def wake(self) -> None:
        """Look for work now."""
        self._more.set()

    async def run(self) -> None:
        """Take jobs, send callbacks and delete what is over, for ever."""
        self._count_at = self._sweep_at = 0.0
        self.wake()
        await lease.look_for_work(
            self._look,
            self._pause,
            log,
            unavailable="jobs cannot be looked for",
            failed="looking for jobs failed",
        )

    async def close(self, patience_s: float) -> None:
        """Let what is being done end; what takes longer is given up, for others to take."""
        await self._running.close(patience_s)
        await self._callbacks.close()
        await self.store.close()
        await self.files.close()

    async def end(self, key: str, keep_s: float | None = None) -> Job | None:
        """Cancel a job, or delete the results of one that is done; None where there is none.

        Args:
            key: the job.
            keep_s: how long one that is cancelled is kept; as any other, where that is left out.

        Raises:
            RecordStoreError: it may have been done or not; to be asked again.
        """
        keep_s = self.settings.keep_s if keep_s is None else keep_s
        if (ended := await self.store.end(key, keep_s)) is None:
            return None
        job = ended.job
        if ended.before.open:
            if key in self._running:
                self._running[key].cancel()
            self._ended(job, job.tokens_not_started())
        await self.files.drop(job.kept)
        return job

    async def sweep(self) -> None:
        """Delete the jobs whose time is over; one whose photos stay is tried again."""
        for job in await self.store.over():
            key = job.spec.key
            try:
                if job.state.open:
                    await self.end(key)
                else:
                    await self.files.drop(job.kept)
                    await self.store.forget(key)
            except JobFilesError as error:
                log.warning("photos of a job cannot be deleted", extra={"reason": str(error)})

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):  # wait_for of Python 3.11 can lose a cancel
                await self._more.wait()
        self._more.clear()

    async def _look(self) -> None:
        await lease.fill(self._running, self.settings.slots, self._take)
        await self._callbacks.send_due()
        if time.monotonic() >= self._count_at:
            self._count_at = time.monotonic() + _COUNT_S
            counts = await self.store.counts()
            for watcher in self.watchers:
                watcher(counts)
        if time.monotonic() >= self._sweep_at:
            self._sweep_at = time.monotonic() + _SWEEP_S
            await self.sweep()

    async def _take(self) -> bool:
        """Begin with a job; whether there was one."""
        taken = await self.store.take(self._lanes(), self.settings.lease_s)
        if taken is None:
            return False
        held = HeldJob(taken.job, taken.token, self.store, self.settings.lease_s)
        self._running.begin(taken.job.spec.key, self._worker.work(held))
        return True

    def _ended(self, job: Job, refund: int) -> None:
        """Pay back what was not used, and say that a job has ended."""
        spec = job.spec
        if spec.receipt and spec.subject is not None and refund:
            self._refund(spec.subject, spec.receipt.part(refund))
        log.info("job", extra={"state": str(job.state), "targets": spec.targets})
        for listener in self.listeners:
            listener(job.state)
        self.wake()
