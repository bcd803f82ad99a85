"""Callbacks that are due: sent, and tried again later where that fails."""

from __future__ import annotations

import contextlib
import json
import logging
import random
import time
from typing import TYPE_CHECKING, Any

from function.background import lease
from function.background.facts import moment
from function.background.jobs import report, webhook
from function.background.jobs.files import JobFilesError
from function.background.jobs.job import CallbackState
from function.background.records import RecordStoreError
from function.tasks import Running
from function.telemetry import logs
from function.telemetry.spans import Span
from function.telemetry.trace_context import TraceContext

if TYPE_CHECKING:
    from function.background.jobs.files import JobFiles
    from function.background.jobs.job import Callback, Job
    from function.background.jobs.store import JobStore
    from function.storage.storage import Storage

log = logging.getLogger("ember.jobs")

_AT_ONCE = 8


class Callbacks:
    """Sends callbacks.

    Args:
        store: says which are due.
        files: has the results that some of them contain.
        storage: sends them.
        lease_s: after how long one is due again when nothing is heard of its sender.
    """

    def __init__(self, store: JobStore, files: JobFiles, storage: Storage, lease_s: float) -> None:
        self._store, self._files, self._storage = store, files, storage
        self._lease_s, self._rng = lease_s, random.Random()  # noqa: S311 (for pauses)
        self._sending = Running[None]()

    async def send_due(self) -> None:
        """Begin to send what is due, a few at once."""
        await lease.fill(self._sending, _AT_ONCE, self._take)

    async def close(self) -> None:
        """Give up what is being sent; it is due again when its lease runs out."""
        await self._sending.close(0.0)

    async def _take(self) -> bool:
        if (job := await self._store.call(self._lease_s)) is None:
            return False
        if job.spec.callback:
            self._sending.begin(job.spec.key, self._send(job, job.spec.callback))
        return True

    async def _send(self, job: Job, to: Callback) -> None:
        spec = job.spec
        logs.request_id.set(spec.request_id)
        data = report.of_job(job)
        if to.images:
            await self._embed(job, data)
        now = time.time()
        event = {"type": f"job.{job.state}", "timestamp": moment(now), "data": data}
        body = json.dumps(event).encode()
        with Span("callback", parent=TraceContext.parse(spec.trace)):
            sent = await webhook.send(self._storage, to, spec.message_id, int(now), body)
        pause_s = None if sent.hopeless else webhook.pause_s(job.calls, self._rng)
        if sent.done:
            state = CallbackState.DELIVERED
        else:
            state = CallbackState.FAILED if pause_s is None else CallbackState.PENDING
        log.info("callback", extra={"outcome": str(state), "tries": job.calls, "reason": sent.note})
        with contextlib.suppress(RecordStoreError):  # then it is sent once more
            await self._store.called(spec.key, state, sent.note, pause_s or 0.0)

    async def _embed(self, job: Job, data: dict[str, Any]) -> None:
        """Put the results into the data, as far as they are there."""
        for index, item in enumerate(job.items):
            with contextlib.suppress(JobFilesError):
                if item.result and (kept := await self._files.get(job.spec.result(index))):
                    image = report.of_image(item.result, await kept.whole())
                    data["items"][index]["image"] = image
