"""The calls: `POST /v1/swap`, `POST /v1/faces` and `POST /v1/verify`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiohttp import hdrs, web

from function.admission.degradation import Degradation
from function.http import accept, answers
from function.http.edge import exchange_of
from function.http.fields import JSON
from function.http.jobs import wants_job
from function.http.offload import offload
from function.http.pricing import look_price, price, verify_price
from function.http.tables import FACES, SWAP, VERIFY, selected, swap_request
from function.images.formats import FORMATS
from function.images.kinds import FileKind
from function.problems import Problem
from function.service import report
from function.service.health import check_open
from function.video import measure

if TYPE_CHECKING:
    from collections.abc import Collection

    from aiohttp.web import Request, Response

    from function.admission.admitted import AdmittedRequest
    from function.http.admission import HttpAdmission
    from function.http.edge import Exchange
    from function.http.fields import Form, SentForm
    from function.http.form_reader import FormReader
    from function.http.jobs import JobHandlers
    from function.requests import FoundFaces, SwapRequest, SwapResult
    from function.service.service import Service
    from warmup.replica import Replica

_FORMAT_OF = {each.media_type: name for name, each in FORMATS.items()}


@dataclass(frozen=True, slots=True)
class SwapHandlers:
    """Handlers of the calls that somebody waits for.

    Attributes:
        service: finds and swaps.
        replica: says whether that can be served yet.
        admission: lets requests in.
        forms: reads them.
        jobs: takes the swaps that nobody waits for.
    """

    service: Service
    replica: Replica
    admission: HttpAdmission
    forms: FormReader
    jobs: JobHandlers

    async def swap(self, request: Request) -> Response:
        """Swap faces and answer the image, or everything about it as JSON."""
        check_open(self.replica)
        if wants_job(request):
            return await self.jobs.make(request)
        exchange = exchange_of(request)
        async with self.admission.admit(request) as admitted:
            sent = await self.forms.sent(request, SWAP)
            wanted, clip = await self.wanted(request, admitted, sent)
            kind, wanted = _negotiate(request, wanted, clip)
            result = await self.swapped(exchange, admitted, wanted)
        if kind == JSON:
            inline = sent.values.get("image") != "none"
            length = len(result.image) if inline else 0
            answer = await offload(length, _report, result, exchange, inline=inline)
        else:
            answer = web.Response(body=result.image, content_type=result.media_type)
        answer.headers[hdrs.VARY] = hdrs.ACCEPT
        return answer

    async def wanted(
        self, request: Request, admitted: AdmittedRequest, sent: SentForm
    ) -> tuple[SwapRequest, FileKind | None]:
        """The swap that the fields of a request ask for, and which animation it is of.

        Raises:
            Problem: it makes no sense, or is not to be answered at once.
        """
        selection = selected(sent)
        wanted = swap_request(await self.forms.fetched(sent, request), selection)
        if sender := admitted.context.sender:
            self.service.trust.check_label(wanted.label, sender)
            await self.service.trust.require_consent(wanted.consent, sender)
        return wanted, await self._direct(wanted)

    async def swapped(
        self, exchange: Exchange, admitted: AdmittedRequest, wanted: SwapRequest
    ) -> SwapResult:
        """Take the price, and swap.

        Raises:
            Problem: it cannot be paid for, or be done.
        """
        tokens = await price(admitted.prices, wanted) if admitted.pays else 0
        async with admitted.work(tokens, _degradations(wanted, self.service.engines.by_role)):
            result = await self.service.swap(wanted, exchange.trace)
        exchange.warnings = tuple(result.warnings)
        return result

    async def _direct(self, wanted: SwapRequest) -> FileKind | None:
        """The kind of an animation that can be answered at once; None for a photo.

        Raises:
            Problem: `needs_job`.
        """
        target = wanted.target
        kind = await offload(len(target.data), lambda: target.clip)
        if kind is None:
            return None
        if not kind.still:
            raise Problem("needs_job", "The target is a video.", image="target")
        if wanted.format not in {None, "webp"}:
            return None
        total = await offload(len(target.data), measure.pixels, target.data, kind) or 0
        if total > (limit := self.service.clips.direct):
            raise Problem(
                "needs_job",
                f"The target is an animation of {total} pixels in all of its frames; the limit"
                f" for an answer is {limit}.",
                image="target",
                limit=limit,
                value=total,
            )
        return kind

    async def faces(self, request: Request) -> Response:
        """The faces of a photo, as JSON."""
        check_open(self.replica)
        exchange = exchange_of(request)
        async with self.admission.admit(request) as admitted:
            form = await self.forms.read(request, FACES)
            accept.best(accept.accepted(request), [JSON])
            found = await self.found(exchange, admitted, form)
        facts = report.of_faces(found, exchange.trace)
        return answers.plain({"request_id": exchange.request_id} | facts)

    async def found(self, exchange: Exchange, admitted: AdmittedRequest, form: Form) -> FoundFaces:
        """Take the price, and find the faces of `image`.

        Raises:
            Problem: it cannot be paid for, or be done.
        """
        photo = form.photos["image"][0]
        tokens = await look_price(admitted.prices, photo) if admitted.pays else 0
        async with admitted.work(tokens):
            found = await self.service.faces(photo, exchange.trace)
        exchange.warnings = tuple(found.warnings)
        return found

    async def verify(self, request: Request) -> Response:
        """What a file carries that tells whether it is a swap, as JSON."""
        check_open(self.replica)
        exchange = exchange_of(request)
        async with self.admission.admit(request) as admitted:
            form = await self.forms.read(request, VERIFY)
            accept.best(accept.accepted(request), [JSON])
            file = form.photos["file"][0]
            tokens = await verify_price(admitted.prices, file) if admitted.pays else 0
            async with admitted.work(tokens):
                found = await self.service.verify(file, exchange.trace)
        return answers.plain({"request_id": exchange.request_id} | found.facts())


def _report(result: SwapResult, exchange: Exchange, *, inline: bool) -> Response:
    """Everything about a swap as JSON, the photo in base64 among it if `inline`."""
    facts = report.of_swap(result, exchange.trace, image=inline)
    return answers.plain({"request_id": exchange.request_id} | facts)


def _degradations(wanted: SwapRequest, roles: Collection[str]) -> tuple[Degradation, ...]:
    """The degradations by which a swap is made less well, with the models that there are."""
    enhances = "enhance" in roles and wanted.options.enhance > 0
    boosts = "swap" in roles
    return (
        Degradation.QUICK_SEARCH,
        *([Degradation.NO_ENHANCER] if enhances else []),
        *([Degradation.SMALLER_BOOST] if boosts else []),
    )


def _negotiate(
    request: Request, wanted: SwapRequest, clip: FileKind | None
) -> tuple[str, SwapRequest]:
    """The media type of the answer, and the request with the format that follows from it."""
    ranges = accept.accepted(request)
    if wanted.format:
        return accept.best(ranges, [FORMATS[wanted.format].media_type, JSON]), wanted
    gif = [str(clip)] if clip is FileKind.GIF else []
    kind = accept.best(ranges, [*_FORMAT_OF, *gif, JSON])
    named = {f"{each.kind}/{each.subtype}": each.quality for each in ranges}
    refused = any(named.get(each) == 0 for each in _FORMAT_OF)
    if kind in {JSON, *gif} or (kind not in named and not refused):
        return kind, wanted  # whatever format the target will turn out to have
    return kind, replace(wanted, format=_FORMAT_OF[kind])
