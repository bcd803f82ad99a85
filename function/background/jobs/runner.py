"""The works: takes jobs from the book when there is time, and does them.

Whatever is done can be done twice: a result has one name, and a target that is marked as done is
not done again. So a job of a replica that died is simply taken up by another.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from function import tasks
from function.background import lease
from function.background.jobs import callback, report
from function.background.jobs.clip_progress import JobClipProgress
from function.background.jobs.files import JobFilesError, NoSpaceError
from function.background.jobs.job import Call, JobItem, JobState, outcome
from function.background.jobs.store import JobStoreError
from function.faces.options import SwapOptions
from function.faces.select import Selection, Way
from function.problems import ObjectNotFoundError, Problem
from function.request_context import RequestContext, current
from function.requests import SwapRequest, Upload
from function.tasks import Running
from function.telemetry import logs
from function.telemetry.spans import Span, SpanKind
from function.telemetry.trace_context import TraceContext
from warmup.objects.errors import ChangedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from function.admission.account import Receipt
    from function.background.jobs.files import JobFiles
    from function.background.jobs.job import Job, JobSpec
    from function.background.jobs.store import JobStore, TakenJob
    from function.request_context import Lane
    from function.requests import Swap, SwapResult
    from function.storage.storage import Storage

log = logging.getLogger("ember.jobs")

MARK = "ember-job"
"""Metadata of an output: which target of which job it was made of."""

_TRIES = 5
_LOOK_S = 1.0
_COUNT_S = 5.0
_SWEEP_S = 30.0
_RENEW_S = 2.0
_CALLS = 8


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """How the works work.

    Attributes:
        lease_s: after how long a job is anybody's whose worker is silent.
        keep_s: how long a job is kept after its end.
        places: how many targets are worked on at once; other jobs hold no photos.
    """

    lease_s: float
    keep_s: float
    places: int


class JobRunner:
    """Does jobs.

    Args:
        store: has the jobs.
        files: has their photos.
        storage: where results go that have a place of their own, and callbacks.
        swap: makes a swap, when its turn has come.
        refund: gives back tokens of a subject.
        lanes: says of which lanes jobs may be begun with now.
        settings: how it works.

    Attributes:
        listeners: are told of each job that has ended here.
        watchers: get now and then what `JobStore.counts` gives: the jobs of all replicas.
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
        self._storage, self._swap, self._refund, self._lanes = storage, swap, refund, lanes
        self._places = asyncio.Semaphore(settings.places)
        self._running = Running[None]()
        self._calls = Running[None]()
        self._more = asyncio.Event()
        self._rng = random.Random()  # noqa: S311 (for pauses)
        self.listeners: list[Callable[[JobState], None]] = []
        self.watchers: list[Callable[[Mapping[str, int]], None]] = []

    def wake(self) -> None:
        """There may be something to do."""
        self._more.set()

    async def run(self) -> None:
        """Take jobs, send callbacks and strike out what is over, for ever."""
        sweep_at = count_at = 0.0
        while True:
            self._more.clear()
            try:
                while len(self._running) < self.settings.places and await self._take():
                    pass
                while len(self._calls) < _CALLS and await self._call():
                    pass
                if time.monotonic() >= count_at:
                    count_at = time.monotonic() + _COUNT_S
                    counts = await self.store.counts()
                    for watcher in self.watchers:
                        watcher(counts)
                if time.monotonic() >= sweep_at:
                    sweep_at = time.monotonic() + _SWEEP_S
                    await self._sweep()
            except (JobStoreError, JobFilesError) as error:
                log.warning("jobs cannot be looked for", extra={"reason": str(error)})
            except Exception:
                log.exception("looking for jobs failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):  # wait_for of Python 3.11 can lose a cancel
                    await self._more.wait()

    async def close(self, patience_s: float) -> None:
        """Let what is being done end; what takes longer is given up, for others to take."""
        await self._running.close(patience_s)
        await self._calls.close(0.0)
        await self.store.close()
        await self.files.close()

    async def end(self, key: str) -> Job | None:
        """Cancel a job, or delete the results of one that is done; None where there is none.

        Raises:
            BookError, ShelfError: it may have been done or not; to be asked again.
        """
        if (ended := await self.store.end(key, self.settings.keep_s)) is None:
            return None
        job = ended.job
        if ended.before.open:
            if key in self._running:
                self._running[key].cancel()
            self._give_back(job.spec, job.unbegun())
            self._tell(job)
        await self.files.drop(job.kept)
        return job

    async def _take(self) -> bool:
        """Begin with a job; whether there was one."""
        taken = await self.store.take(self._lanes(), self.settings.lease_s)
        if taken is None:
            return False
        self._running.begin(taken.job.spec.key, self._work(taken))
        return True

    async def _work(self, taken: TakenJob) -> None:
        """Do a job, as a part of the trace of the request that made it."""
        spec = taken.job.spec
        logs.request_id.set(spec.request_id)
        with Span("job", SpanKind.CONSUMER, TraceContext.parse(spec.trace)) as span:
            span.facts = {
                "ember.request_id": spec.request_id,
                "ember.job.targets": spec.targets,
                "ember.job.tries": taken.job.tries,
            }
            await self._held(taken)

    async def _held(self, taken: TakenJob) -> None:
        """Do a job, as long as it is ours."""
        spec, token = taken.job.spec, taken.token
        if taken.job.tries > 1:
            log.info("taking a job up again", extra={"tries": taken.job.tries})
        keeping = asyncio.create_task(
            lease.keep(
                lambda: self.store.renew(spec.key, token, self.settings.lease_s),
                min(self.settings.lease_s / lease.PARTS, _RENEW_S),
                JobStoreError,
            )
        )
        doing = asyncio.create_task(self._do(taken))
        try:
            await asyncio.wait({keeping, doing}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                log.info("a job is no longer ours")
            elif error := doing.exception():  # its lease will end, and it is tried again
                log.error("a job failed", exc_info=error)
            elif doing.result():
                return
        except asyncio.CancelledError:  # the process ends, or the job was cancelled
            await tasks.end(doing)
            await asyncio.shield(self._told(lambda: self.store.release(spec.key, token, None)))
            await asyncio.shield(self._clear(spec))
            raise
        finally:
            await tasks.end(keeping, doing)
        await self._clear(spec)

    async def _clear(self, spec: JobSpec) -> None:
        """Delete what was put on the shelf after somebody else had ended the job."""
        with contextlib.suppress(JobStoreError, JobFilesError):
            job = await self.store.get(spec.key)
            if job is None or job.state in {JobState.CANCELLED, JobState.DELETED}:
                await self.files.drop(job.kept if job else [*spec.inputs, *spec.results])

    async def _do(self, taken: TakenJob) -> bool:
        """Do what is left of a job, and write down what became of it; whether it was still ours."""
        spec, token, tries = taken.job.spec, taken.token, taken.job.tries
        items = list(taken.job.items)
        left = [at for at, item in enumerate(items) if item.state.open]
        problem, hopeless = _GIVEN_UP, tries > _TRIES
        try:
            if left and not hopeless:
                sources, like = await self._inputs(spec)
                work = [self._item(taken, at, sources, like) for at in left]
                for at, item in zip(left, await asyncio.gather(*work), strict=True):
                    items[at] = item
        except Problem as failure:
            problem, hopeless = failure, failure.kind.status < 500
        if any(item.state.open for item in items) and not hopeless and tries < _TRIES:
            again_s = 2.0**tries * self._rng.uniform(0.5, 1.0)
            return await self._told(lambda: self.store.release(spec.key, token, again_s, items))
        unbegun = replace(taken.job, items=tuple(items)).unbegun()
        for at, item in enumerate(items):
            if item.state.open:
                told = item.problem or report.of_problem(problem)
                items[at] = replace(item, state=JobState.FAILED, problem=told)
        state = outcome(tuple(items))
        keep_s = self.settings.keep_s
        if not await self._told(lambda: self.store.finish(spec.key, token, state, items, keep_s)):
            return False
        self._give_back(spec, unbegun)
        self._tell(replace(taken.job, state=state))
        with contextlib.suppress(JobFilesError):  # what stays is dropped when the job is over
            parts = replace(taken.job, items=tuple(items)).leftovers
            await self.files.drop([*spec.inputs, *parts])
        self.wake()
        return True

    async def _inputs(self, spec: JobSpec) -> tuple[tuple[Upload, ...], Upload | None]:
        """The photos that all targets need.

        Raises:
            Problem: one is not to be had.
        """
        sources = [await self._photo(spec.source(at), "source") for at in range(spec.sources)]
        return tuple(sources), await self._photo(spec.reference, "like") if spec.like else None

    async def _photo(self, name: str, field: str) -> Upload:
        try:
            if (kept := await self.files.get(name)) is None:
                raise ObjectNotFoundError(f"`{field}` is not kept any more.")
            return Upload(await kept.whole(), field)
        except JobFilesError as error:
            log.warning("a photo cannot be read", extra={"reason": str(error)})
            raise _unreachable() from error

    async def _item(
        self, taken: TakenJob, at: int, sources: tuple[Upload, ...], like: Upload | None
    ) -> JobItem:
        """Do one target; what is to be known about it, also where it has to be tried again."""
        spec = taken.job.spec
        context = RequestContext(spec.lane, paid=spec.prices[at] if spec.prices else None)
        before = taken.job.items[at]
        watching = JobClipProgress(
            self.files,
            spec,
            at,
            item=before,
            keep_s=self.settings.keep_s + _SWEEP_S,
            mark=lambda item: self._mark(taken, at, item),
        )
        async with self._places:
            current.set(context)
            telling = asyncio.create_task(watching.tell())
            try:
                if not await self._mark(taken, at, watching.item):
                    return before
                target = await self._photo(spec.target(at), "target")
                result = await self._swap(_order(spec, sources, target, like), watching)
                kept = await self._keep(spec, at, result)
                item = replace(watching.item, state=JobState.SUCCEEDED, result=kept)
            except Problem as problem:
                told = report.of_problem(problem)
                item = replace(watching.item, state=JobState.FAILED, problem=told)
                if problem.kind.status >= 500:
                    began = context.started or before.state is JobState.RUNNING
                    item = replace(item, state=JobState.RUNNING if began else JobState.QUEUED)
            except Exception:
                log.exception("a target of a job failed")
                item = watching.item
            finally:
                await tasks.end(telling)
            await self._mark(taken, at, item)
            return item

    async def _keep(self, spec: JobSpec, at: int, result: SwapResult) -> dict[str, Any]:
        """Put a result where it belongs; what is to be known about it.

        Raises:
            Problem: that cannot be done.
        """
        told = result.facts()
        if spec.outputs:
            await self._write(spec.outputs[at], result, f"{spec.key}/{at}")
            return told | {"uri": spec.outputs[at].partition("?")[0]}
        try:
            keep_s = self.settings.keep_s + _SWEEP_S
            await self.files.put(spec.result(at), result.image, keep_s, spec.holder)
        except JobFilesError as error:
            log.warning("a result cannot be kept", extra={"reason": str(error)})
            raise _unreachable() from error
        except NoSpaceError:
            raise Problem("overloaded", "There is no room for the result.") from None
        return told

    async def _write(self, uri: str, result: SwapResult, mark: str) -> None:
        """Write an output, unless it is there already.

        A signed URL takes no precondition: there, the same is written once more after a crash.
        """
        signed = uri.startswith(("https:", "http:"))
        try:
            await self._storage.write(
                uri,
                result.image,
                media_type=result.media_type,
                metadata={MARK: mark},
                if_generation_match=None if signed else 0,
            )
        except ChangedError:
            facts = await self._storage.stat(uri)
            if not (facts and facts.metadata.get(MARK) == mark):
                raise Problem(
                    "output_taken", "Something else is where the output belongs."
                ) from None

    async def _mark(self, taken: TakenJob, at: int, item: JobItem) -> bool:
        key, token = taken.job.spec.key, taken.token
        return await self._told(lambda: self.store.mark(key, token, at, item))

    async def _told(self, tell: Callable[[], Awaitable[bool]]) -> bool:
        """Tell the book, and while it is silent tell it again, as long as the lease lasts."""
        until = time.monotonic() + self.settings.lease_s
        while True:
            try:
                return await tell()
            except JobStoreError as error:
                log.warning("the book of jobs cannot be told", extra={"reason": str(error)})
                if time.monotonic() >= until:
                    return False
            await asyncio.sleep(self._rng.uniform(0.1, 0.5))

    def _give_back(self, spec: JobSpec, tokens: int) -> None:
        if spec.receipt and spec.subject is not None and tokens:
            self._refund(spec.subject, spec.receipt.part(tokens))

    def _tell(self, job: Job) -> None:
        log.info("job", extra={"state": str(job.state), "targets": job.spec.targets})
        for listener in self.listeners:
            listener(job.state)

    async def _call(self) -> bool:
        """Begin to send a callback; whether one was due."""
        if (job := await self.store.call(self.settings.lease_s)) is None:
            return False
        self._calls.begin(job.spec.key, self._send(job))
        return True

    async def _send(self, job: Job) -> None:
        spec = job.spec
        if spec.callback is None:
            return
        logs.request_id.set(spec.request_id)
        told = report.of_job(job)
        if spec.callback.images:
            await self._embed(job, told)
        now = time.time()
        event = {"type": f"job.{job.state}", "timestamp": report.moment(now), "data": told}
        body = json.dumps(event).encode()
        with Span("callback", parent=TraceContext.parse(spec.trace)):
            sent = await callback.send(
                self._storage, spec.callback, spec.message_id, int(now), body
            )
        pause_s = None if sent.hopeless else callback.pause_s(job.calls, self._rng)
        call = Call.DELIVERED if sent.done else Call.FAILED if pause_s is None else Call.PENDING
        log.info("callback", extra={"outcome": str(call), "tries": job.calls, "reason": sent.note})
        with contextlib.suppress(JobStoreError):  # then it is sent once more
            await self.store.called(spec.key, call, sent.note, pause_s or 0.0)

    async def _embed(self, job: Job, told: dict[str, Any]) -> None:
        """Put the results into what is told, as far as they are there."""
        for at, item in enumerate(job.items):
            with contextlib.suppress(JobFilesError):
                if item.result and (kept := await self.files.get(job.spec.result(at))):
                    told["items"][at]["image"] = report.of_image(item.result, await kept.whole())

    async def _sweep(self) -> None:
        """Strike out the jobs whose time is over; one whose photos stay is tried again."""
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


_GIVEN_UP = Problem("internal", f"It was tried {_TRIES} times and never came to an end.")


def _order(
    spec: JobSpec, sources: tuple[Upload, ...], target: Upload, like: Upload | None
) -> SwapRequest:
    options = spec.options
    return SwapRequest(
        sources=sources,
        target=target,
        faces=Selection.parse(options.get("faces", Way.ALL)),
        like=like,
        format=options.get("format"),
        quality=options.get("quality"),
        options=SwapOptions.of(options),
    )


def _unreachable() -> Problem:
    return Problem("jobs_unavailable", "The photos of jobs cannot be reached.")
