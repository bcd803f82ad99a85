"""One job, from the moment when it is taken to its end, or to when it is given up.

Whatever is done can be done twice: a result has one name, and a target that is marked as done is
not done again. So a job of a replica that died is simply taken up by another.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from dataclasses import replace
from typing import TYPE_CHECKING

from function import tasks
from function.background import facts, lease
from function.background.jobs.files import JobFilesError
from function.background.jobs.job import JobState, outcome
from function.background.records import RecordStoreError
from function.problems import Problem
from function.telemetry import logs
from function.telemetry.spans import Span, SpanKind
from function.telemetry.trace_context import TraceContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.background.jobs.files import JobFiles
    from function.background.jobs.held import HeldJob
    from function.background.jobs.job import Job, JobSpec
    from function.background.jobs.store import JobStore
    from function.background.jobs.target import TargetWorker

log = logging.getLogger("ember.jobs")

_TRIES = 5
_RENEW_S = 2.0
_GIVEN_UP = Problem("internal", f"It was tried {_TRIES} times and never came to an end.")


class JobWorker:
    """Works on jobs.

    Args:
        store: has the jobs.
        files: has their photos.
        targets: works on their targets.
        keep_s: how long a job is kept after its end.
        ended: called with each job that has ended here, and the tokens of it that are to be paid
            back.
    """

    def __init__(
        self,
        store: JobStore,
        files: JobFiles,
        targets: TargetWorker,
        keep_s: float,
        ended: Callable[[Job, int], None],
    ) -> None:
        self._store, self._files, self._targets = store, files, targets
        self._keep_s, self._ended = keep_s, ended
        self._rng = random.Random()  # noqa: S311 (for pauses)

    async def work(self, held: HeldJob) -> None:
        """Work on a job, as a part of the trace of the request that made it."""
        job = held.job
        logs.request_id.set(job.spec.request_id)
        with Span("job", SpanKind.CONSUMER, TraceContext.parse(job.spec.trace)) as span:
            span.facts = {
                "ember.request_id": job.spec.request_id,
                "ember.job.targets": job.spec.targets,
                "ember.job.tries": job.tries,
            }
            if job.tries > 1:
                log.info("taking a job up again", extra={"tries": job.tries})
            await self._while_held(held)

    async def _while_held(self, held: HeldJob) -> None:
        spec, every_s = held.job.spec, min(held.lease_s / lease.PARTS, _RENEW_S)
        async with lease.renewing(held.renew, every_s) as renewing:
            doing = asyncio.create_task(self._do(held))
            try:
                await asyncio.wait({renewing, doing}, return_when=asyncio.FIRST_COMPLETED)
                if not doing.done():
                    log.info("a job is no longer ours")
                elif error := doing.exception():  # its lease will end, and it is tried again
                    log.error("a job failed", exc_info=error)
                elif doing.result():
                    return
            except asyncio.CancelledError:  # the process ends, or the job was cancelled
                await tasks.end(doing)
                await asyncio.shield(held.release(None))
                await asyncio.shield(self._clear(spec))
                raise
            finally:
                await tasks.end(doing)
        await self._clear(spec)

    async def _clear(self, spec: JobSpec) -> None:
        """Delete the files that came after somebody else had ended the job."""
        with contextlib.suppress(RecordStoreError):
            job = await self._store.get(spec.key)
            if job is None or job.state in {JobState.CANCELLED, JobState.DELETED}:
                await self._files.drop(job.kept if job else [*spec.inputs, *spec.results])

    async def _do(self, held: HeldJob) -> bool:
        """Do what is left of a job, and put down what became of it; whether it was still ours."""
        spec, tries, items = held.job.spec, held.job.tries, list(held.job.items)
        left = [index for index, item in enumerate(items) if item.state.open]
        problem, hopeless = _GIVEN_UP, tries > _TRIES
        try:
            if left and not hopeless:
                inputs = await self._targets.inputs(spec)
                work = [self._targets.work(held, index, inputs) for index in left]
                for index, item in zip(left, await asyncio.gather(*work), strict=True):
                    items[index] = item
        except Problem as failure:
            problem, hopeless = failure, failure.kind.status < 500
        if any(item.state.open for item in items) and not hopeless and tries < _TRIES:
            return await held.release(2.0**tries * self._rng.uniform(0.5, 1.0), items)
        not_started = replace(held.job, items=tuple(items)).tokens_not_started()
        for index, item in enumerate(items):
            if item.state.open:
                reason = item.problem or facts.of_problem(problem)
                items[index] = replace(item, state=JobState.FAILED, problem=reason)
        job = replace(held.job, state=outcome(tuple(items)), items=tuple(items))
        if not await held.finish(job.state, items, self._keep_s):
            return False
        self._ended(job, not_started)
        with contextlib.suppress(JobFilesError):  # what stays is dropped when the job is over
            await self._files.drop([*spec.inputs, *job.leftovers])
        return True
