"""Connections: aiohttp's own, except that nothing of aiohttp's or Python's shows in an answer."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from function.http import answers
from function.problems import Problem

if TYPE_CHECKING:
    from aiohttp.web_request import BaseRequest

    from function.http.edge import Edge

KEEPALIVE_S = 120.0
"""How long a connection may be idle, or take to send a request's head. It is longer than the 90
seconds of proxies written in Go, Knative's among them, so that they hang up first."""

MAX_URL_BYTES, MAX_HEADER_BYTES, MAX_HEADERS = 8190, 8192, 128
"""What a request's address, one header with its name, and all headers may have. The first two are
not the same, as only the number tells which of them was exceeded."""

log = logging.getLogger("ember.connection")

_TOO_MANY = "Too many headers"  # how aiohttp calls it, in no type of its own
_AT_ONCE = 32 * 1024
"""So many bytes fit into the transport's buffer: sending them never waits for the client."""

_OPTIONS: dict[str, Any] = {
    "access_log": None,
    "auto_decompress": False,  # else a small body could become an endless one
    "keepalive_timeout": KEEPALIVE_S,
    "lingering_time": 5.0,
    "max_line_size": MAX_URL_BYTES,
    "max_field_size": MAX_HEADER_BYTES,
    "max_headers": MAX_HEADERS,
    "read_bufsize": 2**18,  # so that a photo comes in few pieces
    "logger": log,
}


class Runner(web.AppRunner):
    """Runs an application behind connections that answer every error through the edge.

    Args:
        app: the application.
        edge: what answers.
        shutdown_timeout: seconds that requests in work get to end when the runner is cleaned up.
        answer_timeout: seconds that a client gets to take an answer.
    """

    __slots__ = ("_answer_timeout", "_edge")

    def __init__(
        self, app: web.Application, edge: Edge, *, shutdown_timeout: float, answer_timeout: float
    ) -> None:
        super().__init__(app, shutdown_timeout=shutdown_timeout)
        self._edge, self._answer_timeout = edge, answer_timeout

    async def _make_server(self) -> web.Server:
        return _Server(await super()._make_server(), self._edge, self._answer_timeout)


class _Server(web.Server):
    """Makes connections whose handlers are cancelled when the client goes away."""

    def __init__(self, inner: web.Server, edge: Edge, answer_timeout: float) -> None:
        async def handle(request: BaseRequest) -> web.StreamResponse:
            try:
                return await inner.request_handler(request)
            except web.HTTPException as error:  # raised before the middlewares
                return edge.refuse(request, error)

        super().__init__(handle, request_factory=inner.request_factory, handler_cancellation=True)
        self._edge, self._answer_timeout = edge, answer_timeout

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, self._edge, self._answer_timeout)


class _Connection(web.RequestHandler):
    """One client's connection."""

    __slots__ = ("_answer_timeout", "_edge")

    def __init__(self, server: web.Server, edge: Edge, answer_timeout: float) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **_OPTIONS)
        self._edge, self._answer_timeout = edge, answer_timeout

    async def finish_response(
        self, request: BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer, and see that the client takes it: who never reads must not hold it."""
        pending = self.transport.get_write_buffer_size() if self.transport else 0
        if pending + answers.size(resp) < _AT_ONCE:
            return await super().finish_response(request, resp, start_time)
        try:
            async with asyncio.timeout(self._answer_timeout):
                return await super().finish_response(request, resp, start_time)
        except TimeoutError:
            log.info("a client does not take its answer")
            if self.transport is not None:
                self.transport.abort()
            return resp, True

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 (it may quote the request)
    ) -> web.StreamResponse:
        """Answer bytes that are not HTTP, or a failure outside of the application."""
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the answer is already sent")
        if status == web.HTTPBadRequest.status_code:
            exc = _unreadable(exc)
        return self._edge.refuse(request, exc)


def _unreadable(error: BaseException | None) -> Problem:
    """Why a request cannot be read."""
    if isinstance(error, LineTooLong):
        limit = error.args[1]
        if limit == MAX_URL_BYTES:
            return Problem("url_too_long", f"The address has more than {limit} bytes.", limit=limit)
        return Problem("head_too_large", f"A header has more than {limit} bytes.", limit=limit)
    if _TOO_MANY in str(getattr(error, "message", "")):
        return Problem(
            "head_too_large", f"There are more than {MAX_HEADERS} headers.", limit=MAX_HEADERS
        )
    return Problem("bad_request", "The request is not well-formed HTTP.")
