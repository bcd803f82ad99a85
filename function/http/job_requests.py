"""From a request to a job: it is read, priced and paid; its photos are kept; it is written down."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from function.background.jobs import webhook as callbacks
from function.background.jobs.files import JobFilesError, NoSpaceError
from function.background.jobs.job import TIER, Callback, JobSpec, key_of, names_of
from function.background.jobs.store import JobStoreFullError, OpenedJob
from function.background.records import RecordStoreError
from function.faces.options import SwapOptions
from function.http.edge import exchange_of
from function.http.offload import offload
from function.http.pricing import batch_price
from function.http.tables import OPTIONS, selected
from function.http.uris import check_bucket
from function.problems import Problem, RetryLaterError, retry_after
from function.requests import SwapRequest
from function.telemetry import trace_context
from warmup.objects.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from aiohttp.web import Request

    from function.admission.admitted import AdmittedRequest
    from function.admission.policy import Prices
    from function.admission.quota import Quota
    from function.background.jobs.files import JobFiles
    from function.background.jobs.store import JobStore
    from function.faces.select import Selection
    from function.http.fields import Form, Table
    from function.http.form_reader import FormReader
    from function.settings.background import JobSettings
    from function.trust.trust import Trust

log = logging.getLogger("ember.jobs")

T = TypeVar("T")

_AGAIN_S = 5.0
_LOOKS, _PAUSE_S = 3, 0.5


@dataclass(frozen=True, slots=True)
class JobRequests:
    """Makes jobs of requests.

    Attributes:
        store: where jobs are written down.
        files: where their photos are kept.
        wake: says that there is a new one.
        forms: reads requests.
        quota: gets the tokens of jobs that came to nothing.
        settings: how many there may be, how long they are kept, and where results may go.
        trust: refuses those that have to say who agrees, and do not.
    """

    store: JobStore
    files: JobFiles
    wake: Callable[[], None]
    forms: FormReader
    quota: Quota
    settings: JobSettings
    trust: Trust

    async def wanted(
        self, request: Request, admitted: AdmittedRequest, name: str, table: Table
    ) -> OpenedJob:
        """Make a job, or find the one that the same request has made.

        Raises:
            Problem: everything that can be wrong with it; `job_conflict` when another request has
                made a job of that name.
        """
        sent = await self.forms.sent(request, table)
        digest = await offload(sent.size, sent.digest)
        caller = admitted.caller
        if known := await answered(self.store.get(key_of(caller.subject, name))):
            return _same(OpenedJob(known, new=False), digest)
        targets = len(sent.photos["target"])
        outputs = self._outputs(sent.values, targets)
        callback = self._callback(sent.values, targets)
        selection = selected(sent)
        SwapOptions.of(sent.values)  # as far as that can be known to be wrong
        if sender := admitted.context.sender:
            self.trust.check_label(sent.values.get("label"), sender)
            await self.trust.require_consent(sent.values.get("consent"), sender)
        form = await self.forms.fetched(sent, request)
        prices = await self._prices(form, selection, admitted.prices) if admitted.pays else ()
        sources, likes = form.people("source", "sources"), form.people("like", "likes")
        here = trace_context.current.get()
        spec = JobSpec(
            id=name,
            subject=caller.subject,
            digest=digest,
            at=secrets.token_hex(16),
            lane=admitted.job_lane,
            created=time.time(),
            sources=len(sources),
            targets=targets,
            like=len(likes),
            options={name: form.values[name] for name in OPTIONS if name in form.values}
            | {TIER: caller.tier.name}
            | names_of(sources, likes),
            outputs=outputs,
            prices=prices,
            receipt=await admitted.pay(sum(prices)),
            callback=callback,
            request_id=exchange_of(request).request_id,
            trace=here.parent if here else "",
        )
        opened = _same(await self._written(spec, form), digest)
        self.wake()
        return opened

    async def _written(self, spec: JobSpec, form: Form) -> OpenedJob:
        """Keep the photos, and then write the job down."""
        keep_s = self.settings.job_keep_s
        sources, likes = form.people("source", "sources"), form.people("like", "likes")
        photos = [*sources, *form.photos["target"], *likes]
        try:
            for name, photo in zip(spec.inputs, photos, strict=True):
                await answered(self.files.put(name, photo.data, 2 * keep_s, spec.holder))
            opened = await self._opened(spec)
        except _UnsureError:  # if it is written down, it needs its photos
            raise unavailable() from None
        except (JobStoreFullError, NoSpaceError) as error:
            await self._undo(spec)
            raise self._no_room(error) from None
        except BaseException:
            await asyncio.shield(self._undo(spec))
            raise
        if not opened.new:
            await self._undo(spec)
        return opened

    def _no_room(self, error: JobStoreFullError | NoSpaceError) -> Problem:
        if isinstance(error, NoSpaceError) and error.own:
            return Problem(
                "too_many",
                "The photos and results of your jobs leave no room for more.",
                headers=retry_after(_AGAIN_S),
                setting="EMBER_JOB_CALLER_BYTES",
                hint="Delete jobs whose results you have, or wait until they are forgotten.",
            )
        if isinstance(error, NoSpaceError):
            return RetryLaterError(
                "overloaded",
                "The photos of the jobs at hand leave no room for more.",
                _AGAIN_S,
                setting="EMBER_JOB_BYTES",
            )
        if error.memory:
            return RetryLaterError(
                "overloaded", "Redis has too little memory left for further jobs.", _AGAIN_S
            )
        return RetryLaterError(
            "overloaded",
            "As many jobs as there is room for are open.",
            _AGAIN_S,
            limit=self.settings.job_limit,
            setting="EMBER_JOB_LIMIT",
        )

    async def _opened(self, spec: JobSpec) -> OpenedJob:
        """Write a job down. When no answer comes, look whether that was done.

        Raises:
            FullError: it was not.
            Problem: it was not, as the store cannot be asked.
            _UnsureError: nobody knows.
        """
        try:
            return await self.store.open(spec, self.settings.job_limit, self.settings.job_keep_s)
        except RecordStoreError:
            for _ in range(_LOOKS):
                await asyncio.sleep(_PAUSE_S)
                try:
                    found = await self.store.get(spec.key)
                except RecordStoreError:
                    continue
                if found is None:
                    raise unavailable() from None
                return OpenedJob(found, new=found.spec.at == spec.at)
            raise _UnsureError from None

    async def _undo(self, spec: JobSpec) -> None:
        """Give back and delete what was for a job that is none."""
        if spec.receipt and spec.subject is not None:
            self.quota.refund(spec.subject, spec.receipt)
        with contextlib.suppress(JobFilesError):  # it forgets them by itself
            await self.files.drop(spec.inputs)

    def _outputs(self, values: Mapping[str, Any], targets: int) -> tuple[str, ...]:
        """Where results are written to; nothing where they are kept here."""
        if "output" not in values:
            return ()
        uris = tuple(values["output"].split())
        if len(uris) != targets or len(set(uris)) < targets:
            raise Problem(
                "bad_value",
                f"`output` needs {targets} different URIs, one for each target.",
                field="output",
            )
        for uri in uris:
            scheme = uri.partition(":")[0].lower()
            if scheme == "gs":
                check_bucket(uri, self.settings.output_buckets, "EMBER_OUTPUT_BUCKETS")
            elif scheme not in {"https", "http"}:
                raise Problem(
                    "unsupported_uri",
                    "`output` takes gs: URIs, and signed https: ones.",
                    field="output",
                )
        return uris

    def _callback(self, values: Mapping[str, Any], targets: int) -> Callback | None:
        """What is called when the job has ended; None for nothing."""
        uri, images = values.get("callback"), values.get("callback_image") == "base64"
        secret = values.get("callback_secret", self.settings.webhook_secret)
        if uri is None:
            if extra := {"callback_secret", "callback_image"} & values.keys():
                name = min(extra)
                raise Problem("bad_value", f"`{name}` is only for `callback`.", field=name)
            return None
        if not uri.startswith(("https://", "http://")):
            raise Problem("bad_value", "`callback` is an https: URI.", field="callback")
        from warmup.objects.web import checked

        try:
            checked(uri)
        except RefusedError as error:
            raise Problem("bad_value", f"`callback`: {error}", field="callback") from None
        if secret is None:
            raise Problem(
                "missing_field",
                "A callback is signed, so `callback_secret` is needed.",
                field="callback_secret",
            )
        try:
            callbacks.secret(secret)
        except ValueError:
            raise Problem(
                "bad_value",
                "`callback_secret` is whsec_ and 24 to 64 bytes in base64.",
                field="callback_secret",
            ) from None
        if images and targets > 1:
            raise Problem(
                "bad_value",
                "`callback_image` is for a job of one target.",
                field="callback_image",
            )
        return Callback(uri, secret, images)

    async def _prices(self, form: Form, selection: Selection, prices: Prices) -> tuple[int, ...]:
        """Tokens for each target; several cost what a batch does."""
        targets = form.photos["target"]
        sources, likes = form.people("source", "sources"), form.people("like", "likes")
        wanted = SwapRequest(sources, targets[0], selection, likes)
        return await batch_price(prices, wanted, targets)


async def answered(question: Awaitable[T]) -> T:
    """The answer of the store or of the files.

    Raises:
        Problem: `jobs_unavailable`.
    """
    try:
        return await question
    except (RecordStoreError, JobFilesError) as error:
        log.warning("jobs cannot be reached", extra={"reason": str(error)})
        raise unavailable() from error


def unavailable() -> Problem:
    """The problem of a store that cannot be asked."""
    return Problem(
        "jobs_unavailable",
        "The book of jobs, or the place of their photos, cannot be reached.",
        headers={"Retry-After": "2"},
    )


class _UnsureError(Exception):
    """Nobody knows whether a job is in the store."""


def _same(opened: OpenedJob, digest: str) -> OpenedJob:
    """What was opened, if it is of the same request.

    Raises:
        Problem: `job_conflict`.
    """
    if opened.job.spec.digest == digest:
        return opened
    raise Problem("job_conflict", "Another request has made a job with this id.", field="id")
