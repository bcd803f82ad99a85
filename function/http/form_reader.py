"""A request to its fields: its body is read and parsed, and what its URIs name is fetched."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from email.message import Message
from typing import TYPE_CHECKING

from aiohttp import hdrs

from function.http.edge import exchange_of
from function.http.fields import (
    JSON,
    MULTIPART,
    Form,
    Photos,
    Value,
    checked_upload,
    checked_value,
    from_json,
    from_multipart,
    names_of,
)
from function.problems import Problem
from function.requests import Upload
from function.trust.gate.consent import is_text
from warmup.objects.fair_semaphore import FairSemaphore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from aiohttp.web import Request

    from function.admission.byte_budget import BodyBytes
    from function.http.body import BodyReader
    from function.http.fields import SentForm, Table
    from function.http.uris import Fetch

CONSENT = "Ember-Consent"
"""The header that is the field `consent`, for bodies that are made before anybody has agreed."""
FETCHES = 1024, 16
"""How many URIs are fetched at once, and for one caller."""


@dataclass(frozen=True, slots=True)
class FormReader:
    """Reads the fields of requests.

    Attributes:
        bodies: reads their bodies.
        fetch: gets the images behind URIs.
        budget: gives the bytes of what is fetched for the running request, none at first.
        fetching: how many URIs are fetched at once, and for one caller.
    """

    bodies: BodyReader
    fetch: Fetch
    budget: Callable[[], BodyBytes]
    fetching: FairSemaphore = field(default_factory=lambda: FairSemaphore(*FETCHES))

    async def read(self, request: Request, table: Table) -> Form:
        """The fields of a request, with the images behind its URIs.

        Args:
            request: the request; its query must be empty.
            table: the fields that it may have.

        Raises:
            Problem: everything that can be wrong with it.
        """
        return await self.fetched(await self.sent(request, table), request)

    async def sent(self, request: Request, table: Table) -> SentForm:
        """The fields of a request as they were sent, before anything is fetched.

        Raises:
            Problem: everything that can be wrong with them.
        """
        media_type, boundary = _content_type(request)

        def parse(data: bytearray) -> SentForm:
            if media_type == MULTIPART:
                return from_multipart(data, boundary, table)
            return from_json(data, table)

        return await self.parsed(request, table, parse)

    async def parsed(
        self, request: Request, table: Table, parse: Callable[[bytearray], SentForm]
    ) -> SentForm:
        """The same of a body that `parse` understands.

        Raises:
            Problem: everything that can be wrong with them.
        """
        no_query(request)
        data = await self.bodies.read(request)
        with exchange_of(request).trace.span("parse"):
            found = await self.bodies.parsed(len(data), lambda: parse(data))
        for name, spec in table.items():
            there = name in found.photos or name in found.values
            if spec.required and not there and not _instead(spec, found):
                raise Problem("missing_field", f"`{name}` is missing.", field=name)
        if isinstance(field := table.get("consent"), Value) and CONSENT in request.headers:
            said = checked_value(_header(request, CONSENT), field, "consent")
            found.values.setdefault("consent", said)
        return found

    async def fetched(self, sent: SentForm, request: Request) -> Form:
        """The fields of a request, with the images behind its URIs.

        Raises:
            Problem: an image cannot be fetched, or is empty.
        """
        exchange = exchange_of(request)
        held = exchange.owned.enter_context(self.budget())

        async def have(photo: Upload | str, name: str) -> Upload:
            if isinstance(photo, Upload):
                return photo
            # Callers without a name may be anybody, so only those with one have shares.
            caller = exchange.subject
            async with self.fetching.place(caller) if caller else nullcontext():
                with exchange.trace.span("fetch"):
                    return checked_upload(await self.fetch(photo, name, held.take))

        photos = {
            name: tuple([await have(each, name) for each in several])
            for name, several in sent.photos.items()
        }
        return Form(photos, sent.values)


def _instead(spec: Photos | Value, found: SentForm) -> bool:
    return isinstance(spec, Photos) and bool(names_of(found.photos, spec.instead))


def no_query(request: Request, known: Collection[str] = ()) -> None:
    """Refuse unknown query parameters, which are probably fields in the wrong place.

    Raises:
        Problem: `unknown_field`.
    """
    for name in request.query:
        if name not in known:
            raise Problem(
                "unknown_field",
                f"There is no query parameter `{name[:80]}`.",
                field=name[:80],
                hint="Put fields into the body.",
            )


def _header(request: Request, name: str) -> str:
    """The text of a header.

    Raises:
        Problem: `bad_value`; it is not UTF-8.
    """
    text = request.headers[name]
    if not is_text(text):
        raise Problem("bad_value", f"The header {name} is not UTF-8.", field=name)
    return text


def _content_type(request: Request) -> tuple[str, str]:
    """The media type of the body, and its boundary, if it has one."""
    headers = Message()
    sent = request.headers.get(hdrs.CONTENT_TYPE, "")
    headers["Content-Type"] = sent if sent.isascii() else ""
    media_type = headers.get_content_type()
    charset = headers.get_content_charset("utf-8")
    if media_type not in {MULTIPART, JSON} or charset not in {"utf-8", "utf8", "us-ascii"}:
        raise Problem(
            "unsupported_media_type",
            f"The body has to be {MULTIPART} or {JSON}, in UTF-8.",
            headers={"Accept-Post": f"{MULTIPART}, {JSON}"},
            hint=f"Send {MULTIPART} (curl -F source=@a.jpg -F target=@b.jpg) or {JSON}.",
        )
    return media_type, headers.get_boundary("")
