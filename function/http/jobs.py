"""The calls about jobs: swaps that are done when there is time."""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs, web

from function.background.jobs import report
from function.background.jobs.changes import Changes
from function.background.jobs.job import key_of, owner_of
from function.background.jobs.stream_limits import TooManyStreamsError
from function.background.records import RecordStoreError
from function.http import accept, answers, ranges
from function.http.edge import exchange_of
from function.http.form_reader import no_query
from function.http.job_requests import answered
from function.http.tables import ASYNC, JOB
from function.problems import Problem, RetryLaterError, retry_after
from function.service.health import check_open
from warmup.phase import Phase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp.web import Request, Response

    from function.admission.admitted import AdmittedRequest
    from function.admission.load import LoadEstimator
    from function.background.jobs.files import JobFiles
    from function.background.jobs.job import Job
    from function.background.jobs.runner import JobRunner
    from function.background.jobs.store import JobStore
    from function.background.jobs.stream_limits import Stream, StreamLimits
    from function.http.admission import AdmittedExchange, HttpAdmission
    from function.http.job_requests import JobRequests
    from warmup.replica import Replica

PREFER, RESPOND_ASYNC = "Prefer", "respond-async"
LAST = "Last-Event-ID"
STREAM = "text/event-stream"
ID = "[A-Za-z0-9_-]{1,64}"

_RESPOND_ASYNC = re.compile(rf"(^|[,;])\s*{RESPOND_ASYNC}\s*($|[,;=])", re.IGNORECASE)
_LONG_ENOUGH = 20
"""Characters of an id that is all that protects a job, where nobody says who he is."""
_SILENCE_S, _AGAIN_S = 15.0, 5.0
_SOME, _MOST = 50, 200
_LATEST = 10**6


def wants_job(request: Request) -> bool:
    """Whether nobody waits for the answer (RFC 7240)."""
    return any(_RESPOND_ASYNC.search(each) for each in request.headers.getall(PREFER, []))


class JobHandlers:
    """Handlers of the calls about jobs.

    Args:
        requests: makes jobs.
        runner: ends them.
        store: where they are written down.
        files: where their results are kept.
        admission: lets requests in.
        load: how long requests take.
        replica: says whether new ones are taken.
        stream_s: how long a stream of events may last.
        streams: how many of them there may be.
    """

    def __init__(
        self,
        requests: JobRequests,
        runner: JobRunner,
        store: JobStore,
        files: JobFiles,
        *,
        admission: HttpAdmission,
        load: LoadEstimator,
        replica: Replica,
        stream_s: float,
        streams: StreamLimits,
    ) -> None:
        self._requests, self._runner, self._store, self._files = requests, runner, store, files
        self._admission, self._load, self._replica = admission, load, replica
        self._stream_s, self._streams = stream_s, streams
        self._changes = Changes(store, self._event, self._leaving)

    async def put(self, request: Request) -> Response:
        """Make a job, or say how far the one of that name is, if it is the same."""
        check_open(self._replica)
        name = request.match_info["id"]
        async with self._admit(request) as admitted:
            if admitted.caller.subject is None and len(name) < _LONG_ENOUGH:
                raise Problem(
                    "bad_value",
                    f"Where nobody says who he is, the id of a job has {_LONG_ENOUGH} characters"
                    " or more: who knows it may do everything with the job.",
                    field="id",
                    hint="Use a UUID.",
                )
            opened = await self._requests.wanted(request, admitted, name, JOB)
            return await self._answer(opened.job, 201 if opened.new else 200)

    async def make(self, request: Request) -> Response:
        """Make a job of a swap whose answer nobody waits for."""
        async with self._admit(request) as admitted:
            opened = await self._requests.wanted(request, admitted, uuid.uuid4().hex, ASYNC)
            exchange_of(request).headers["Preference-Applied"] = RESPOND_ASYNC
            return await self._answer(opened.job, 202)

    async def get(self, request: Request) -> Response:
        """How far a job is."""
        no_query(request)
        async with self._admit(request) as admitted:
            return await self._answer(await self._found(request, admitted))

    async def some(self, request: Request) -> Response:
        """The caller's jobs, the newest first."""
        no_query(request, ("start", "count"))
        start, count = _whole(request, "start", 0, 0, _LATEST), _whole(request, "count", _SOME, 1)
        async with self._admit(request) as admitted:
            if (subject := admitted.caller.subject) is None:
                raise Problem(
                    "forbidden",
                    "Jobs are listed for callers who say who they are, and nobody does here.",
                    hint="Ask for a job by its id.",
                )
            jobs = await answered(self._store.of(owner_of(subject), start, count + 1))
        following = start + count if len(jobs) > count else None
        facts = [report.of_job(job) for job in jobs[:count]]
        return answers.plain({"jobs": facts, "next": following})

    async def delete(self, request: Request) -> Response:
        """Cancel a job, or delete the results of one that has ended."""
        no_query(request)
        async with self._admit(request) as admitted:
            key = key_of(admitted.caller.subject, request.match_info["id"])
            if (job := await answered(self._runner.end(key))) is None:
                raise _unknown()
            return await self._answer(job)

    async def result(self, request: Request) -> Response:
        """One result of a job: the photo, piece by piece as it is read."""
        no_query(request)
        async with self._admit(request) as admitted:
            job = await self._found(request, admitted)
            at = int(request.match_info["place"])
            found = job.items[at].result if at < len(job.items) else None
            kept = None
            if found and "uri" not in found:
                kept = await answered(self._files.get(job.spec.result(at)))
            if kept is None or found is None:
                raise Problem(
                    "not_found",
                    f"There is no result {at} of this job here; the job is {job.state}.",
                    hint="The job says what became of each of its targets.",
                )
            accept.best(accept.accepted(request), [found["media_type"]])
        name = hashlib.sha256(job.spec.result(at).encode()).hexdigest()
        headers: dict[str, str] = {
            hdrs.ACCEPT_RANGES: "bytes",
            hdrs.ETAG: f'"{name[:16]}-{kept.size}"',
        }
        part = ranges.wanted(request.headers, kept.size, headers[hdrs.ETAG])
        if part is None:
            body, status, size = kept.pieces, 200, kept.size
        else:
            body, status, size = ranges.cut(kept.pieces, part), 206, part.length
            headers |= part.headers
        headers |= {hdrs.CONTENT_LENGTH: str(size), hdrs.CONTENT_TYPE: found["media_type"]}
        return web.Response(body=body, status=status, headers=headers)

    async def events(self, request: Request) -> Response:
        """How far a job is, with every change (server-sent events)."""
        no_query(request)
        async with self._admit(request) as admitted:
            job = await self._found(request, admitted)
            accept.best(accept.accepted(request), [STREAM])
        last = request.headers.get(LAST, "")
        seen = int(last) if re.fullmatch("[0-9]{1,15}", last) else 0
        stream = self._stream(job, seen, self._take_stream(admitted.caller.subject))
        return web.Response(body=stream, content_type=STREAM, charset="utf-8")

    async def _stream(self, job: Job, seen: int, open_stream: Stream) -> AsyncIterator[bytes]:
        """Whatever has changed since a version, until there is nothing more to come."""
        until = time.monotonic() + self._stream_s
        try:
            with self._changes.listen(job) as watched:
                yield b"retry: 1000\n\n"
                while (current := watched.job) is not None:
                    if current.version != seen:
                        seen = current.version
                        yield await watched.message(current)
                    else:
                        yield b": nothing new\n\n"
                    left_s = until - time.monotonic()
                    if not current.state.open or self._leaving() or left_s <= 0:
                        return
                    if watched.job is current:  # it may have changed while that was being sent
                        await watched.wait(min(_SILENCE_S, left_s))
        finally:
            open_stream.release()

    def _take_stream(self, subject: str | None) -> Stream:
        """One of the streams that there may be.

        Raises:
            Problem: `too_many`, `overloaded`.
        """
        limits = self._streams
        try:
            return limits.take(subject)
        except TooManyStreamsError as error:
            if not error.own:
                raise RetryLaterError(
                    "overloaded",
                    "As many streams as there is room for are open.",
                    _AGAIN_S,
                    limit=limits.limit,
                    setting="EMBER_JOB_STREAMS",
                ) from None
        raise Problem(
            "too_many",
            f"You listen to {limits.each} streams already.",
            headers=retry_after(_AGAIN_S),
            limit=limits.each,
            setting="EMBER_JOB_CALLER_STREAMS",
        )

    def _admit(self, request: Request) -> AdmittedExchange:
        return self._admission.admit(request, waits=False)

    async def _found(self, request: Request, admitted: AdmittedRequest) -> Job:
        """The job that a request is about; of others there is none.

        Raises:
            Problem: `not_found`, `jobs_unavailable`.
        """
        key = key_of(admitted.caller.subject, request.match_info["id"])
        if job := await answered(self._store.get(key)):
            return job
        raise _unknown()

    async def _answer(self, job: Job, status: int = 200) -> Response:
        headers: dict[str, str] = {}
        if status != 200:
            headers[hdrs.LOCATION] = f"{report.PATH}/{job.spec.id}"
        if job.state.open:
            headers[hdrs.RETRY_AFTER] = "1"
        return answers.plain(await self._facts(job), status=status, headers=headers)

    def _leaving(self) -> bool:
        return self._replica.phase in {Phase.DRAINING, Phase.FAILED}

    async def _event(self, job: Job) -> bytes:
        """How far a job is, as one event of a stream."""
        data = json.dumps(await self._facts(job))
        return f"id: {job.version}\nevent: {job.state}\ndata: {data}\n\n".encode()

    async def _facts(self, job: Job) -> dict[str, Any]:
        """Everything about a job; how long it will take follows from what was learned here."""
        ahead, eta_s = None, None
        if job.state.open:
            try:
                ahead = await self._store.ahead(job.spec.key)
            except RecordStoreError:
                ahead = None
            left = job.spec.targets - job.done + (ahead or 0)
            if (eta_s := self._load.load.eta_s(left)) is not None:
                eta_s = round(eta_s, 1)
        return report.of_job(job) | {"position": ahead, "eta_s": eta_s}


def _unknown() -> Problem:
    return Problem(
        "not_found",
        "There is no such job, or there is none any more.",
        hint="Jobs are forgotten some time after their end.",
    )


def _whole(request: Request, name: str, default: int, least: int, most: int = _MOST) -> int:
    """A query parameter that is a whole number."""
    text = request.query.get(name, str(default))
    if not re.fullmatch("[0-9]{1,7}", text) or not least <= int(text) <= most:
        raise Problem(
            "bad_value", f"`{name}` is a whole number from {least} to {most}.", field=name
        )
    return int(text)
