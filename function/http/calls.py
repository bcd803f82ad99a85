"""The calls: `POST /v1/swap` and `POST /v1/faces`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs, web

from function import report
from function.admission.ladder import Rung
from function.admission.policy import Job
from function.faces.look import BLEND, DEFAULT, Look, parse_masks
from function.faces.select import Selection, Way
from function.http import accept, answers, fields
from function.http.aside import aside
from function.http.edge import exchange_of
from function.http.fields import JSON, Photos, Value
from function.http.health import check_open
from function.images import size
from function.images.formats import FORMATS
from function.orders import SwapOrder
from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from aiohttp.web import Request, Response

    from function.http.body import Limits
    from function.http.edge import Exchange
    from function.http.fields import Form, Table
    from function.http.uris import Fetch
    from function.orders import SwapResult
    from function.service import Service
    from warmup.replica import Replica

SWAP: Table = {
    "source": Photos("Photos of the person to put in.", most=8, required=True),
    "target": Photos("The photo to change.", required=True),
    "like": Photos("A photo of the person to replace; goes with `faces=like`."),
    "faces": Value(
        "Which faces of the target; indices are those of `/v1/faces`, from 0, from the left.",
        {
            "type": "string",
            "pattern": "^(all|largest|like|index:[0-9]{1,6}(,[0-9]{1,6})*)$",
            "maxLength": 4096,
            "default": "all",
        },
    ),
    "format": Value(
        "The format of the result; by default the target's own where possible, else PNG.",
        {"type": "string", "enum": list(FORMATS)},
    ),
    "quality": Value(
        "Of the result, where the format loses quality.",
        {"type": "integer", "minimum": 1, "maximum": 100},
    ),
    "boost": Value(
        "Side in pixels up to which faces are made, in multiples of what the model makes; by"
        " default what they need, up to 256. Needs a model for swapping.",
        {"type": "integer", "minimum": 128, "maximum": 1024},
    ),
    "weight": Value(
        "How much of the source's identity, in percent: at 100 that of the target is even taken"
        " away. Needs a model for swapping.",
        {"type": "integer", "minimum": 0, "maximum": 100, "default": 50},
    ),
    "enhance": Value(
        "How much of the enhanced face is used, in percent; 0 for none. Needs an enhancer.",
        {"type": "integer", "minimum": 0, "maximum": 100, "default": BLEND},
    ),
    "masks": Value(
        "What decides which part of a face is replaced, with commas between; by default what the"
        " replica has of box and occlusion. Needs a model for swapping.",
        {
            "type": "string",
            "pattern": "^(box|occlusion|area|region)(,(box|occlusion|area|region))*$",
            "maxLength": 64,
        },
    ),
    "image": Value(
        "Whether a JSON answer has the image.",
        {"type": "string", "enum": ["base64", "none"], "default": "base64"},
    ),
}
FACES: Table = {"image": Photos("The photo to look at.", required=True)}

_FORMAT_OF = {each.media_type: name for name, each in FORMATS.items()}


@dataclass(frozen=True, slots=True)
class Calls:
    """Handlers of the calls; `replica` tells whether they can be served yet."""

    service: Service
    replica: Replica
    limits: Limits
    fetch: Fetch

    async def swap(self, request: Request) -> Response:
        """Swap faces and answer the image, or everything about it as JSON."""
        check_open(self.replica)
        exchange = exchange_of(request)
        async with self.limits.door.visit(request) as visit:
            form = await fields.read(request, SWAP, self.limits, self.fetch)
            kind, order = _negotiate(request, _order(form))
            job = await _job(order) if visit.pays else None
            async with visit.work(job, _saves(order, self.service.engines.slots)):
                result = await self.service.swap(order, exchange.trace)
        exchange.warnings = tuple(result.cautions)
        if kind == JSON:
            inline = form.values.get("image") != "none"
            length = len(result.image) if inline else 0
            answer = await aside(length, _told, result, exchange, inline=inline)
        else:
            answer = web.Response(body=result.image, content_type=result.media_type)
        answer.headers[hdrs.VARY] = hdrs.ACCEPT
        return answer

    async def faces(self, request: Request) -> Response:
        """Tell which faces a photo has."""
        check_open(self.replica)
        exchange = exchange_of(request)
        async with self.limits.door.visit(request) as visit:
            form = await fields.read(request, FACES, self.limits, self.fetch)
            accept.best(_wishes(request), [JSON])
            async with visit.work(None):
                found = await self.service.faces(form.photos["image"][0], exchange.trace)
        exchange.warnings = tuple(found.cautions)
        told = report.of_faces(found, exchange.trace)
        return answers.plain({"request_id": exchange.request_id} | told)


def _told(result: SwapResult, exchange: Exchange, *, inline: bool) -> Response:
    """Everything about a swap as JSON, the photo in base64 among it if `inline`."""
    told = report.of_swap(result, exchange.trace, image=inline)
    return answers.plain({"request_id": exchange.request_id} | told)


def _order(form: Form) -> SwapOrder:
    selection = Selection.parse(form.values.get("faces", Way.ALL))
    like = form.photos.get("like", (None,))[0]
    if like and selection.way is not Way.LIKE:
        raise Problem(
            "bad_value",
            "`like` is only for faces=like.",
            field="like",
            hint="Add faces=like, or leave out `like`.",
        )
    if selection.way is Way.LIKE and not like:
        raise Problem("missing_field", "`faces=like` needs a photo of the person.", field="like")
    return SwapOrder(
        sources=form.photos["source"],
        target=form.photos["target"][0],
        faces=selection,
        like=like,
        format=form.values.get("format"),
        quality=form.values.get("quality"),
        look=_look(form.values),
    )


def _look(values: Mapping[str, Any]) -> Look:
    weight, masks = values.get("weight"), values.get("masks")
    return Look(
        boost=values.get("boost"),
        weight=DEFAULT.weight if weight is None else weight / 100,
        enhance=values.get("enhance", DEFAULT.enhance),
        masks=None if masks is None else parse_masks(masks),
    )


async def _job(order: SwapOrder) -> Job:
    """What the price depends on; a target that cannot be read costs as little as the smallest."""
    data = order.target.data
    pixels = await aside(len(data), size.pixels, data)
    return Job(pixels or 1, len(order.sources), order.faces.named)


def _saves(order: SwapOrder, roles: Collection[str]) -> tuple[Rung, ...]:
    """The rungs on which a swap is made less well, with the models that there are."""
    enhances = "enhance" in roles and order.look.enhance > 0
    boosts = "swap" in roles
    return (
        Rung.QUICK_SEARCH,
        *([Rung.NO_ENHANCER] if enhances else []),
        *([Rung.SMALLER_BOOST] if boosts else []),
    )


def _negotiate(request: Request, order: SwapOrder) -> tuple[str, SwapOrder]:
    """The media type of the answer, and the order with the format that follows from it."""
    wishes = _wishes(request)
    if order.format:
        return accept.best(wishes, [FORMATS[order.format].media_type, JSON]), order
    kind = accept.best(wishes, [*_FORMAT_OF, JSON])
    named = {f"{wish.kind}/{wish.subtype}": wish.quality for wish in wishes}
    refused = any(named.get(each) == 0 for each in _FORMAT_OF)
    if kind == JSON or (kind not in named and not refused):
        return kind, order  # whatever format the target will turn out to have
    return kind, replace(order, format=_FORMAT_OF[kind])


def _wishes(request: Request) -> tuple[accept.Wish, ...]:
    return accept.parse(request.headers.getall(hdrs.ACCEPT, []))
