"""The body of a request: read whole, but never more of it and never longer than allowed."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from aiohttp import hdrs
from aiohttp.http import HttpProcessingError
from aiohttp.web import RequestPayloadError

from function.http.edge import exchange_of
from function.http.offload import AT_ONCE
from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.web import Request

    from function.admission.byte_budget import BodyBytes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BodyReader:
    """Reads bodies.

    Attributes:
        budget: gives the bytes of a body of the running request, of which there are none yet.
        max_bytes: of one body.
        timeout_s: for one body.
        setting: what sets `max_bytes`; "" when it is fixed.
        parsing: lets one large body be parsed at a time.
    """

    budget: Callable[[], BodyBytes]
    max_bytes: int
    timeout_s: float
    setting: str = "EMBER_MAX_BODY_BYTES"
    parsing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, request: Request) -> bytearray:
        """Read a body. Until the request ends it takes its part of the bytes of all bodies.

        A client that waits for `100 Continue` gets it here and not before, so that whatever is
        wrong with the head of its request is said before it sends a photo.

        Raises:
            Problem: `body_too_large`, at once when the length is announced; `body_timeout`;
                `overloaded`, at once as well; `unsupported_media_type` for a compressed body;
                `bad_request` for broken chunks.
        """
        if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
            raise Problem(
                "unsupported_media_type",
                "The body is compressed (Content-Encoding); photos already are.",
                headers={hdrs.ACCEPT_ENCODING: "identity"},
                hint="Send the body as it is.",
            )
        if (announced := request.content_length or 0) > self.max_bytes:
            raise self._too_large(announced)
        exchange = exchange_of(request)
        held = exchange.owned.enter_context(self.budget())
        held.take(announced)
        if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        data = bytearray()  # grows in place; pieces to be joined would take their size once more
        content = request.content
        try:
            with exchange.trace.span("receive"):
                # What came with the head is there already. Pieces are taken as they came: joining
                # them first, as other ways of reading do, would copy everything once more.
                at_once = content.is_eof()
                async with nullcontext() if at_once else asyncio.timeout(self.timeout_s):
                    while not content.at_eof():
                        chunk, _ = await content.readchunk()
                        exchange.bytes_in += len(chunk)
                        if exchange.bytes_in > self.max_bytes:
                            raise self._too_large(exchange.bytes_in)
                        if not announced:
                            held.take(len(chunk))
                        data += chunk
                return data
        except TimeoutError:
            raise Problem(
                "body_timeout",
                f"The body did not arrive within {self.timeout_s:g} seconds.",
                limit=self.timeout_s,
                setting="EMBER_BODY_TIMEOUT_S",
            ) from None
        except (RequestPayloadError, HttpProcessingError):
            raise Problem("bad_request", "The transfer of the body is broken.") from None

    async def parsed(self, size: int, parse: Callable[[], T]) -> T:
        """The result of `parse`, which may hold copies of a body of `size` bytes.

        Those of large bodies are made one after the other, on a thread: so there are never more
        than those of one, however many bodies there are. A caller that stops waiting does not let
        the next one begin before the thread has ended.
        """
        if size <= AT_ONCE:
            return parse()
        await self.parsing.acquire()
        task = asyncio.ensure_future(asyncio.to_thread(parse))
        task.add_done_callback(lambda _: self.parsing.release())
        return await asyncio.shield(task)

    def _too_large(self, value: int) -> Problem:
        """The problem; `value` is the announced length, or what had come at the limit."""
        named = f" ({self.setting})" if self.setting else ""
        problem = Problem(
            "body_too_large",
            f"The body is larger than {self.max_bytes} bytes{named}.",
            limit=self.max_bytes,
            value=value,
        )
        if self.setting:
            problem.extra["setting"] = self.setting
        return problem
