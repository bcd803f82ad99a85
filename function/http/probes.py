"""What platforms and operators ask: alive, ready, warm-up, metrics."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs, web

from function.http import answers, fields
from function.problems import Problem
from warmup.trace_format import trace_events

if TYPE_CHECKING:
    from aiohttp.web import Request, Response

    from function.http.health import Health
    from function.metrics import Metrics
    from function.service import Service
    from warmup.replica import Replica

_FORMATS = ("json", "trace")
_FORCE = {"": True, "true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Probes:
    """Handlers of the probes."""

    service: Service
    replica: Replica
    metrics: Metrics
    health: Health

    async def healthz(self, _: Request) -> Response:
        """Alive, whatever the replica is doing, unless a thread is stuck."""
        told = self.health.alive()
        stuck = self.health.stuck
        return answers.plain(told, status=503 if stuck else 200, headers=self._later(stuck))

    async def readyz(self, _: Request) -> Response:
        """Ready, or what it waits for."""
        told = self.health.readiness()
        ready = told["ready"]
        return answers.plain(told, status=200 if ready else 503, headers=self._later(not ready))

    async def timeline(self, request: Request) -> Response:
        """How the warm-up went so far; `format=trace` for viewers of Chrome's traces."""
        fields.no_query(request, {"format"})
        wanted = request.query.get("format", "json")
        if wanted not in _FORMATS:
            raise Problem("bad_value", "`format` is json or trace.", field="format")
        if wanted == "trace":
            return answers.plain(trace_events(self.service.timeline.spans, os.getpid()))
        return answers.plain(self._timeline())

    async def warm(self, request: Request) -> Response:
        """Wait for the warm-up; `force=true` repeats it."""
        fields.no_query(request, {"force"})
        force = _FORCE.get(request.query.get("force", "false").lower())
        if force is None:
            raise Problem("bad_value", "`force` is true or false.", field="force")
        try:
            await self.replica.warm(force=force)
        except Exception:
            return answers.plain(self._timeline(), status=503, headers=self._later(True))
        ready = self.replica.ready
        status = 200 if ready else 503
        return answers.plain(self._timeline(), status=status, headers=self._later(not ready))

    async def scrape(self, _: Request) -> Response:
        """Metrics for Prometheus."""
        headers = {hdrs.CONTENT_TYPE: "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=self.metrics.text(), headers=headers)

    def _timeline(self) -> dict[str, Any]:
        return {
            "phase": str(self.replica.phase),
            "steps": [
                {"phase": str(step.phase), "at_s": round(step.at_s, 4)}
                for step in self.replica.steps
            ],
            "spans": self.service.timeline.facts(),
            "last_error": self.replica.last_error,
        }

    def _later(self, when: object) -> dict[str, str]:
        """`Retry-After`, where it applies: with the next try, else after a second."""
        if not when:
            return {}
        return {hdrs.RETRY_AFTER: str(max(1, math.ceil(self.replica.next_try_s or 0)))}
