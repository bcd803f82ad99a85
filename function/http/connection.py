"""Connections: aiohttp's own, except that nothing of aiohttp's or Python's shows in an answer."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from aiohttp import web

from function.problems import Problem

if TYPE_CHECKING:
    from aiohttp.web_request import BaseRequest

    from function.http.edge import Edge

KEEPALIVE_S = 120.0
"""How long a connection may be idle, or take to send a request's head. It is longer than the 90
seconds of proxies written in Go, Knative's among them, so that they hang up first."""

_OPTIONS: dict[str, Any] = {
    "access_log": None,
    "auto_decompress": False,  # else a small body could become an endless one
    "keepalive_timeout": KEEPALIVE_S,
    "lingering_time": 5.0,
    "logger": logging.getLogger("ember.connection"),
}


class Runner(web.AppRunner):
    """Runs an application behind connections that answer every error through the edge.

    Args:
        app: the application.
        edge: what answers.
        shutdown_timeout: seconds that requests in work get to end when the runner is cleaned up.
    """

    __slots__ = ("_edge",)

    def __init__(self, app: web.Application, edge: Edge, *, shutdown_timeout: float) -> None:
        super().__init__(app, shutdown_timeout=shutdown_timeout)
        self._edge = edge

    async def _make_server(self) -> web.Server:
        return _Server(await super()._make_server(), self._edge)


class _Server(web.Server):
    """Makes connections whose handlers are cancelled when the client goes away."""

    def __init__(self, inner: web.Server, edge: Edge) -> None:
        async def handle(request: BaseRequest) -> web.StreamResponse:
            try:
                return await inner.request_handler(request)
            except web.HTTPException as error:  # raised before the middlewares
                return edge.refuse(request, error)

        super().__init__(handle, request_factory=inner.request_factory, handler_cancellation=True)
        self._edge = edge

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, self._edge)


class _Connection(web.RequestHandler):
    """One client's connection."""

    __slots__ = ("_edge",)

    def __init__(self, server: web.Server, edge: Edge) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **_OPTIONS)
        self._edge = edge

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
            exc = Problem("bad_request", "The request is not well-formed HTTP.")
        return self._edge.refuse(request, exc)
