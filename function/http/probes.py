"""What platforms and operators ask: alive, ready, warm-up, metrics."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs, web

from function.http import answers
from function.http.form_reader import no_query
from function.problems import Problem
from warmup.trace_format import trace_events

if TYPE_CHECKING:
    from aiohttp.web import Request, Response

    from function.http.admission import HttpAdmission
    from function.service.health import Health
    from function.service.service import Service
    from function.telemetry.metrics import Metrics
    from warmup.replica import Replica

_FORMATS = ("json", "trace")
_FORCE = {"": True, "true": True, "1": True, "false": False, "0": False}


_PAUSE_S = 60.0
_FORWARDED = (hdrs.FORWARDED, hdrs.X_FORWARDED_FOR, hdrs.VIA)


class RateLimit:
    """Lets something be done once in `pause_s` seconds; `next` is when it may be done again."""

    def __init__(self, pause_s: float) -> None:
        self.pause_s, self.next = pause_s, -math.inf

    def check(self, now: float) -> None:
        """Let it be done, at a time in seconds.

        Raises:
            Problem: `too_often`.
        """
        if now < self.next:
            raise Problem(
                "too_often",
                f"This is done once in {self.pause_s:g} seconds at most, as the replica is not"
                " ready meanwhile.",
                headers={hdrs.RETRY_AFTER: str(math.ceil(self.next - now))},
                limit=self.pause_s,
            )
        self.next = now + self.pause_s


@dataclass(frozen=True, slots=True)
class ProbeHandlers:
    """Handlers of the probes.

    Attributes:
        service: has the timeline of the start.
        replica: is warmed, and has its phase.
        metrics: what Prometheus gets.
        health: whether the replica is alive and ready.
        admission: knows operators.
        forced: when a replica that is ready may be warmed again.
    """

    service: Service
    replica: Replica
    metrics: Metrics
    health: Health
    admission: HttpAdmission
    forced: RateLimit = field(default_factory=lambda: RateLimit(_PAUSE_S))

    async def healthz(self, _: Request) -> Response:
        """Alive, whatever the replica is doing, unless a thread is stuck."""
        facts = self.health.alive()
        stuck = self.health.stuck
        return answers.plain(facts, status=503 if stuck else 200, headers=self._later(stuck))

    async def readyz(self, _: Request) -> Response:
        """Ready, or what it waits for."""
        facts = self.health.readiness()
        ready = facts["ready"]
        return answers.plain(facts, status=200 if ready else 503, headers=self._later(not ready))

    async def timeline(self, request: Request) -> Response:
        """How the warm-up went so far; `format=trace` for viewers of Chrome's traces."""
        no_query(request, {"format"})
        wanted = request.query.get("format", "json")
        if wanted not in _FORMATS:
            raise Problem("bad_value", "`format` is json or trace.", field="format")
        if wanted == "trace":
            return answers.plain(trace_events(self.service.timeline.spans, os.getpid()))
        return answers.plain(self._timeline())

    async def warm(self, request: Request) -> Response:
        """Wait for the warm-up; `force=true` repeats it.

        What would be done again and again for whoever asks is for operators: to repeat it, and not
        to wait for the pause after a failure.
        """
        no_query(request, {"force"})
        force = _FORCE.get(request.query.get("force", "false").lower())
        if force is None:
            raise Problem("bad_value", "`force` is true or false.", field="force")
        if force:
            await self._check_operator(request)
            if self.replica.ready:
                self.forced.check(time.monotonic())
        elif self.replica.next_try_s is not None and not await self._is_operator(request):
            return answers.plain(self._timeline(), status=503, headers=self._later(True))
        try:
            await self.replica.warm(force=force)
        except Exception:
            return answers.plain(self._timeline(), status=503, headers=self._later(True))
        ready = self.replica.ready
        status = 200 if ready else 503
        return answers.plain(self._timeline(), status=status, headers=self._later(not ready))

    async def _is_operator(self, request: Request) -> bool:
        try:
            await self._check_operator(request)
        except Problem:
            return False
        return True

    async def _check_operator(self, request: Request) -> None:
        """See that an operator asks; where nobody says who he is, somebody on this machine.

        Raises:
            Problem: `forbidden`, `unauthenticated`, `auth_unavailable`.
        """
        if self.admission.anonymous:
            if not _from_here(request):
                raise Problem(
                    "forbidden",
                    "Where nobody says who he is, only the machine itself may ask for this.",
                    hint="On the server, set EMBER_AUTH, and send the credentials of an operator.",
                )
        elif not (await self.admission.identify(request)).tier.operator:
            raise Problem("forbidden", "Only an operator may ask for this.")

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


def _from_here(request: Request) -> bool:
    """Whether a request comes from this machine, and by no proxy on it."""
    if any(name in request.headers for name in _FORWARDED):
        return False
    try:
        return ip_address(request.remote or "").is_loopback
    except ValueError:
        return False
