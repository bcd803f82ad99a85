"""The edge: every request comes in and every answer goes out through here.

It gives a request its id and its trace, turns whatever was raised into a problem, and writes one
log line and one set of counts for each.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import hdrs, web

from function.http import answers
from function.problems import Problem
from function.telemetry import logs
from function.telemetry.ending import CLIENT_GONE
from function.telemetry.spans import Span, SpanKind
from function.telemetry.timings import Timings
from function.telemetry.trace_context import TraceContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from aiohttp.web_request import BaseRequest

    from function.http.origins import Origins
    from function.telemetry.metrics import Metrics

log = logging.getLogger("ember.http")

_PING, _PING_ROUTE = "Ember-Ping", "ping"
"""Marks what no user has asked for, so that metrics of users do not have it."""
_SANE_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


@dataclass(slots=True)
class Exchange:
    """What is known about one request while it is being answered.

    Attributes:
        route: the template of its address, never the address itself: its values are without bound.
        request_id: the client's own, where it sent a sane one.
        span: this exchange, in the trace that it is part of.
        subject: who calls; None where nobody says who he is, or as long as that is not known.
        trace: where the time goes.
        bytes_in: bytes of the body that were read.
        code: of the problem that is the answer.
        warnings: codes of the warnings that the answer carries.
        degraded: what was done less well because the queue is long.
        headers: more headers of the answer, whatever it is.
        owned: what is given back when the request ends, however it does.
    """

    route: str
    request_id: str
    span: Span
    subject: str | None = None
    trace: Timings = field(default_factory=Timings)
    bytes_in: int = 0
    code: str | None = None
    warnings: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    owned: ExitStack = field(default_factory=ExitStack)


_EXCHANGE = web.RequestKey("exchange", Exchange)


def exchange_of(request: BaseRequest) -> Exchange:
    """The exchange that this request belongs to."""
    return request[_EXCHANGE]


class Edge:
    """The outermost middleware, also used for requests that are no HTTP at all.

    Args:
        metrics: counts every request.
        leaving: tells whether the replica is about to stop, so that connections are not kept.
        degraded: tells which models run on something else than was wanted.
        origins: which pages of browsers may call.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        leaving: Callable[[], bool],
        degraded: Callable[[], Iterable[str]],
        origins: Origins,
    ) -> None:
        self._metrics = metrics
        self._origins = origins
        self._leaving = leaving
        self._degraded = degraded

    @web.middleware
    async def middleware(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer one request, whatever happens inside."""
        resource = request.match_info.route.resource
        exchange = _begin(request, resource.canonical if resource else "unmatched")
        response: web.StreamResponse
        try:
            with exchange.owned:
                self._origins.check(request.headers)
                response = await handler(request)
        except asyncio.CancelledError:
            self._record(exchange, request, CLIENT_GONE, 0)
            raise
        except web.HTTPMethodNotAllowed as error:
            response = self._wrong_method(exchange, request, error.allowed_methods)
        except Exception as error:
            response = self._refused(exchange, request, error)
        self._finish(exchange, request, response)
        return response

    def refuse(self, request: BaseRequest, error: BaseException | None) -> web.Response:
        """Answer what went wrong outside of `middleware`, e.g. bytes that are not HTTP."""
        exchange = _begin(request, "unmatched")
        response = self._refused(exchange, request, error)
        response.force_close()
        self._finish(exchange, request, response)
        return response

    def _wrong_method(
        self, exchange: Exchange, request: web.Request, allowed: Iterable[str]
    ) -> web.Response:
        allow = ", ".join(sorted({*allowed, hdrs.METH_OPTIONS}))
        if request.method == hdrs.METH_OPTIONS:
            asked = self._origins.preflight(request.headers, allow)
            return web.Response(status=204, headers={hdrs.ALLOW: allow} | asked)
        problem = Problem(
            "method_not_allowed",
            f"{request.method} is not possible here; {allow} are.",
            headers={hdrs.ALLOW: allow},
        )
        return self._refused(exchange, request, problem)

    def _refused(
        self, exchange: Exchange, request: BaseRequest, error: BaseException | None
    ) -> web.Response:
        if isinstance(error, web.HTTPNotFound):
            error = Problem("not_found", f"There is nothing at {request.path[:200]}.")
        elif isinstance(error, web.HTTPException) and error.status < 500:
            error = Problem("bad_request", "The request cannot be handled.")
        elif not isinstance(error, Problem):
            log.error("a request failed", exc_info=error)
            error = Problem("internal", "Something went wrong inside Ember; it has been logged.")
        exchange.code = error.code
        if exchange.route.startswith("/v2"):  # where clients look, by the Open Inference Protocol
            error.extra["error"] = f"{error.detail} {error.hint}"
        return answers.problem(error, exchange.request_id)

    def _finish(
        self, exchange: Exchange, request: BaseRequest, response: web.StreamResponse
    ) -> None:
        totals = exchange.trace.totals()
        totals["total"] = _seconds(exchange) * 1e3
        headers = response.headers
        headers["Server-Timing"] = ", ".join([f"{k};dur={ms:.1f}" for k, ms in totals.items()])
        headers["Ember-Request-Id"] = exchange.request_id
        if exchange.headers:
            headers.update(exchange.headers)
        if exchange.warnings:
            headers["Ember-Warnings"] = ", ".join(exchange.warnings)
        if degraded := ", ".join((*self._degraded(), *exchange.degraded)):
            headers["Ember-Degraded"] = degraded
        headers.update(self._origins.answer(request.headers))
        if self._origins.vary:
            headers.add(hdrs.VARY, hdrs.ORIGIN)
        headers[hdrs.SERVER] = "ember"
        headers["X-Content-Type-Options"] = "nosniff"
        headers.setdefault(hdrs.CACHE_CONTROL, "no-store")
        # A body that nobody read would be taken for the next request; a replica that leaves wants
        # its clients elsewhere.
        if self._leaving() or not request.content.is_eof():
            response.force_close()
        self._record(exchange, request, response.status, answers.size(response))

    def _record(
        self, exchange: Exchange, request: BaseRequest, status: int, bytes_out: int
    ) -> None:
        seconds = _seconds(exchange)
        self._metrics.count(
            route=exchange.route,
            method=request.method,
            status=status,
            seconds=seconds,
            stages=exchange.trace.totals(),
            problem=exchange.code,
            warnings=exchange.warnings,
            degraded=exchange.degraded,
        )
        facts = {
            "method": request.method,
            "route": exchange.route,
            "status": status,
            "ms": round(seconds * 1e3, 1),
            "bytes_in": exchange.bytes_in,
            "bytes_out": bytes_out,
            "request_id": exchange.request_id,
        }
        if exchange.code:
            facts["code"] = exchange.code
        log.info("request", extra=facts)
        exchange.span.facts = {
            "http.request.method": request.method,
            "http.route": exchange.route,
            "http.response.status_code": status,
            "http.request.body.size": exchange.bytes_in,
            "http.response.body.size": bytes_out,
            "ember.request_id": exchange.request_id,
        }
        if exchange.code:
            exchange.span.facts["error.type"] = exchange.code
        exchange.span.stages = exchange.trace
        exchange.span.end(failed=status >= 500)


def _begin(request: BaseRequest, route: str) -> Exchange:
    headers = request.headers
    wish = headers.get("Ember-Request-Id") or headers.get("X-Request-Id") or ""
    route = _PING_ROUTE if _PING in headers else route
    sane = wish and _SANE_ID.fullmatch(wish)
    parent = TraceContext.parse(headers.get("traceparent"), headers.get("tracestate"))
    span = Span(
        f"{request.method} {route}",
        SpanKind.SERVER,
        parent,
        recorded=route.startswith("/v1/")
        or (route, request.method) in {("/", "POST"), ("/v2/models/{model}/infer", "POST")},
    )
    exchange = Exchange(route, wish if sane else os.urandom(16).hex(), span)
    request[_EXCHANGE] = exchange
    logs.request_id.set(exchange.request_id)
    return exchange


def _seconds(exchange: Exchange) -> float:
    return time.perf_counter() - exchange.trace.began
