"""What platforms and operators ask: alive, ready, warm-up, metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs, web

from function.http import answers, fields
from function.problems import Problem
from warmup.phase import Phase

if TYPE_CHECKING:
    from aiohttp.web import Request, Response

    from function.metrics import Metrics
    from function.service import Service
    from warmup.replica import Replica

_WAITING_FOR = {
    Phase.STARTING: "the start of the process",
    Phase.FETCHING: "the download of the models",
    Phase.LOADING: "the models to be loaded",
    Phase.WARMING: "the first inferences",
    Phase.DRAINING: "the requests in work; it will not be ready again",
    Phase.FAILED: "a restart; it will not be ready again",
}
_LATER = {"Retry-After": "1"}
_FORCE = {"": True, "true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Probes:
    """Handlers of the probes."""

    service: Service
    replica: Replica
    metrics: Metrics

    async def healthz(self, _: Request) -> Response:
        """Alive, whatever the replica is doing."""
        return answers.plain({"status": "alive"})

    async def readyz(self, _: Request) -> Response:
        """Ready, or what it waits for; a probe that is told 503 may come again at once."""
        replica = self.replica
        told = {
            "ready": replica.ready,
            "phase": str(replica.phase),
            "waiting_for": _WAITING_FOR.get(replica.phase),
            "models": self.service.providers,
            "last_error": replica.last_error,
        }
        if replica.ready:
            return answers.plain(told)
        return answers.plain(told, status=503, headers=_LATER)

    async def timeline(self, _: Request) -> Response:
        """How the warm-up went so far."""
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
            return answers.plain(self._timeline(), status=503, headers=_LATER)
        return answers.plain(self._timeline())

    async def scrape(self, _: Request) -> Response:
        """Metrics for Prometheus."""
        headers = {hdrs.CONTENT_TYPE: "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=self.metrics.text(), headers=headers)

    def _timeline(self) -> dict[str, Any]:
        return {
            "phase": str(self.replica.phase),
            "steps": [
                {"phase": str(step.phase), "at_s": round(step.at_s, 3)}
                for step in self.replica.steps
            ],
        }
