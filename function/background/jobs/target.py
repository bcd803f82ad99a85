"""One target of a job: from its photos to a result where it belongs."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from function import tasks
from function.background import facts
from function.background.jobs.clip_progress import JobClipProgress
from function.background.jobs.files import JobFilesError, NoSpaceError
from function.background.jobs.job import TIER, JobItem, JobState
from function.faces.options import SwapOptions
from function.faces.select import Selection, Way
from function.problems import ObjectNotFoundError, Problem
from function.request_context import Entry, RequestContext, Sender, current
from function.requests import SwapRequest, Upload
from warmup.objects.errors import ChangedError

if TYPE_CHECKING:
    from function.background.jobs.files import JobFiles
    from function.background.jobs.held import HeldJob
    from function.background.jobs.job import JobSpec
    from function.requests import Swap, SwapResult
    from function.storage.storage import Storage

log = logging.getLogger("ember.jobs")

MARK = "ember-job"
"""Metadata of an output: which target of which job it was made of."""


@dataclass(frozen=True, slots=True)
class JobInputs:
    """The photos that all targets of a job need."""

    sources: tuple[Upload, ...]
    likes: tuple[Upload, ...]


class TargetWorker:
    """Works on targets.

    Args:
        files: has the photos of jobs.
        storage: where results go that have a place of their own.
        swap: makes a swap, when its turn has come.
        keep_s: how long results and finished parts of clips are kept.
        slots: how many targets are worked on at once.
    """

    def __init__(
        self, files: JobFiles, storage: Storage, swap: Swap, keep_s: float, slots: int
    ) -> None:
        self._files, self._storage, self._swap = files, storage, swap
        self._keep_s, self._free = keep_s, asyncio.Semaphore(slots)

    async def inputs(self, spec: JobSpec) -> JobInputs:
        """The photos that all targets need.

        Raises:
            Problem: one is not to be had.
        """
        people, replaced = spec.names("source", spec.sources), spec.names("like", spec.like)
        sources = [
            await self._photo(spec.source(place), "source", name)
            for place, name in enumerate(people)
        ]
        likes = [
            await self._photo(spec.reference(place), "like", name)
            for place, name in enumerate(replaced)
        ]
        return JobInputs(tuple(sources), tuple(likes))

    async def work(self, held: HeldJob, index: int, inputs: JobInputs) -> JobItem:
        """Swap one target.

        Returns:
            What is to be known about it; its state is open where it has to be tried again.
        """
        spec, before = held.job.spec, held.job.items[index]
        context = RequestContext(
            spec.lane,
            paid=spec.prices[index] if spec.prices else None,
            sender=_sender(spec, index),
        )
        progress = JobClipProgress(
            self._files,
            spec,
            index,
            item=before,
            keep_s=self._keep_s,
            mark=lambda item: held.mark(index, item),
        )
        async with self._free:
            current.set(context)
            marking = asyncio.create_task(progress.mark_now_and_then())
            try:
                if not await held.mark(index, progress.item):
                    return before
                target = await self._photo(spec.target(index), "target")
                result = await self._swap(_request(spec, target, inputs), progress)
                kept = await self._keep(spec, index, result)
                item = replace(progress.item, state=JobState.SUCCEEDED, result=kept)
            except Problem as problem:
                state = JobState.FAILED
                if problem.kind.status >= 500:
                    began = context.started or before.state is JobState.RUNNING
                    state = JobState.RUNNING if began else JobState.QUEUED
                item = replace(progress.item, state=state, problem=facts.of_problem(problem))
            except Exception:
                log.exception("a target of a job failed")
                item = progress.item
            finally:
                await tasks.end(marking)
            await held.mark(index, item)
            return item

    async def _photo(self, file: str, field: str, name: str = "") -> Upload:
        try:
            if (kept := await self._files.get(file)) is None:
                raise ObjectNotFoundError(f"`{field}` is not kept any more.")
            return Upload(await kept.whole(), field, name=name)
        except JobFilesError as error:
            log.warning("a photo cannot be read", extra={"reason": str(error)})
            raise _unreachable() from error

    async def _keep(self, spec: JobSpec, index: int, result: SwapResult) -> dict[str, Any]:
        """Put a result where it belongs; what is to be known about it.

        Raises:
            Problem: that cannot be done.
        """
        known = result.facts()
        if spec.outputs:
            await self._write(spec.outputs[index], result, f"{spec.key}/{index}")
            return known | {"uri": spec.outputs[index].partition("?")[0]}
        try:
            await self._files.put(spec.result(index), result.image, self._keep_s, spec.holder)
        except JobFilesError as error:
            log.warning("a result cannot be kept", extra={"reason": str(error)})
            raise _unreachable() from error
        except NoSpaceError:
            raise Problem("overloaded", "There is no room for the result.") from None
        return known

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
            known = await self._storage.stat(uri)
            if not (known and known.metadata.get(MARK) == mark):
                raise Problem(
                    "output_taken", "Something else is where the output belongs."
                ) from None


def _request(spec: JobSpec, target: Upload, inputs: JobInputs) -> SwapRequest:
    options = spec.options
    return SwapRequest(
        sources=inputs.sources,
        target=target,
        faces=Selection.parse(options.get("faces", Way.ALL)),
        likes=inputs.likes,
        format=options.get("format"),
        quality=options.get("quality"),
        options=SwapOptions.of(options),
        consent=options.get("consent"),
        label=options.get("label"),
    )


def _sender(spec: JobSpec, index: int) -> Sender:
    """Who has asked for a target; where there are several, its place is part of the id."""
    place = f"#{index}" if spec.targets > 1 else ""
    return Sender(Entry.JOB, f"{spec.request_id}{place}", spec.subject, spec.options.get(TIER, ""))


def _unreachable() -> Problem:
    return Problem("jobs_unavailable", "The photos of jobs cannot be reached.")
