"""The calls: `POST /v1/swap` and `POST /v1/faces`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiohttp import hdrs, web

from function.admission.degradation import Degradation
from function.faces.options import SwapOptions
from function.http import accept, answers, fields
from function.http.edge import exchange_of
from function.http.fields import JSON
from function.http.jobs import wants_job
from function.http.offload import aside
from function.http.pricing import look_price, price
from function.http.tables import FACES, SWAP, selected
from function.images.formats import FORMATS
from function.images.kinds import FileKind
from function.problems import Problem
from function.requests import SwapRequest
from function.service import report
from function.service.health import check_open
from function.video import measure

if TYPE_CHECKING:
    from collections.abc import Collection

    from aiohttp.web import Request, Response

    from function.http.body import BodyReader
    from function.http.edge import Exchange
    from function.http.fields import Form
    from function.http.jobs import Jobs
    from function.http.uris import Fetch
    from function.requests import SwapResult
    from function.service.service import Service
    from warmup.replica import Replica

_FORMAT_OF = {each.media_type: name for name, each in FORMATS.items()}


@dataclass(frozen=True, slots=True)
class Swaps:
    """Handlers of the calls; `replica` tells whether they can be served yet."""

    service: Service
    replica: Replica
    limits: BodyReader
    fetch: Fetch
    jobs: Jobs

    async def swap(self, request: Request) -> Response:
        """Swap faces and answer the image, or everything about it as JSON."""
        check_open(self.replica)
        if wants_job(request):
            return await self.jobs.make(request)
        exchange = exchange_of(request)
        async with self.limits.admission.admit(request) as admitted:
            form = await fields.read(request, SWAP, self.limits, self.fetch)
            wanted = _order(form)
            clip = await self._direct(wanted)
            kind, wanted = _negotiate(request, wanted, clip)
            tokens = await price(admitted.prices, wanted) if admitted.pays else 0
            async with admitted.work(tokens, _degradations(wanted, self.service.engines.slots)):
                result = await self.service.swap(wanted, exchange.trace)
        exchange.warnings = tuple(result.warnings)
        if kind == JSON:
            inline = form.values.get("image") != "none"
            length = len(result.image) if inline else 0
            answer = await aside(length, _told, result, exchange, inline=inline)
        else:
            answer = web.Response(body=result.image, content_type=result.media_type)
        answer.headers[hdrs.VARY] = hdrs.ACCEPT
        return answer

    async def _direct(self, wanted: SwapRequest) -> FileKind | None:
        """The kind of an animation that can be answered at once; None for a photo.

        Raises:
            Problem: `needs_job`.
        """
        target = wanted.target
        kind = await aside(len(target.data), lambda: target.clip)
        if kind is None:
            return None
        if not kind.still:
            raise Problem("needs_job", "The target is a video.", image="target")
        if wanted.format not in {None, "webp"}:
            return None
        total = await aside(len(target.data), measure.pixels, target.data, kind) or 0
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
        """Tell which faces a photo has."""
        check_open(self.replica)
        exchange = exchange_of(request)
        async with self.limits.admission.admit(request) as admitted:
            form = await fields.read(request, FACES, self.limits, self.fetch)
            accept.best(_wishes(request), [JSON])
            photo = form.photos["image"][0]
            tokens = await look_price(admitted.prices, photo) if admitted.pays else 0
            async with admitted.work(tokens):
                found = await self.service.faces(photo, exchange.trace)
        exchange.warnings = tuple(found.warnings)
        told = report.of_faces(found, exchange.trace)
        return answers.plain({"request_id": exchange.request_id} | told)


def _told(result: SwapResult, exchange: Exchange, *, inline: bool) -> Response:
    """Everything about a swap as JSON, the photo in base64 among it if `inline`."""
    told = report.of_swap(result, exchange.trace, image=inline)
    return answers.plain({"request_id": exchange.request_id} | told)


def _order(form: Form) -> SwapRequest:
    like = form.photos.get("like", (None,))[0]
    return SwapRequest(
        sources=form.photos["source"],
        target=form.photos["target"][0],
        faces=selected(form.values, like=like is not None),
        like=like,
        format=form.values.get("format"),
        quality=form.values.get("quality"),
        options=SwapOptions.of(form.values),
    )


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
    """The media type of the answer, and the order with the format that follows from it."""
    wishes = _wishes(request)
    if wanted.format:
        return accept.best(wishes, [FORMATS[wanted.format].media_type, JSON]), wanted
    gif = [str(clip)] if clip is FileKind.GIF else []
    kind = accept.best(wishes, [*_FORMAT_OF, *gif, JSON])
    named = {f"{wish.kind}/{wish.subtype}": wish.quality for wish in wishes}
    refused = any(named.get(each) == 0 for each in _FORMAT_OF)
    if kind in {JSON, *gif} or (kind not in named and not refused):
        return kind, wanted  # whatever format the target will turn out to have
    return kind, replace(wanted, format=_FORMAT_OF[kind])


def _wishes(request: Request) -> tuple[accept.Wish, ...]:
    return accept.parse(request.headers.getall(hdrs.ACCEPT, []))
