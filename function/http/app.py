"""The application: addresses to handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from function.http.jobs import ID

if TYPE_CHECKING:
    from function.http.data import DataHandlers
    from function.http.edge import Edge
    from function.http.events import EventHandlers
    from function.http.inference import InferenceHandlers
    from function.http.jobs import JobHandlers
    from function.http.probes import ProbeHandlers
    from function.http.quota import QuotaHandlers
    from function.http.static import StaticFiles
    from function.http.swaps import SwapHandlers


def application(
    edge: Edge,
    *,
    swaps: SwapHandlers,
    jobs: JobHandlers,
    data: DataHandlers,
    quotas: QuotaHandlers,
    events: EventHandlers,
    inference: InferenceHandlers,
    probes: ProbeHandlers,
    static: StaticFiles,
) -> web.Application:
    """An application that answers through the edge."""
    app = web.Application(middlewares=[edge.middleware])
    app.add_routes(
        [
            web.post("/v1/swap", swaps.swap, expect_handler=_later),
            web.post("/v1/faces", swaps.faces, expect_handler=_later),
            web.post("/v1/verify", swaps.verify, expect_handler=_later),
            web.get("/v1/jobs", jobs.some),
            web.put(f"/v1/jobs/{{id:{ID}}}", jobs.put, expect_handler=_later),
            web.get(f"/v1/jobs/{{id:{ID}}}", jobs.get),
            web.delete(f"/v1/jobs/{{id:{ID}}}", jobs.delete),
            web.get(f"/v1/jobs/{{id:{ID}}}/events", jobs.events),
            web.get(f"/v1/jobs/{{id:{ID}}}/results/{{place:[0-9]{{1,4}}}}", jobs.result),
            web.delete("/v1/data", data.delete),
            web.get("/v1/quota", quotas.standing),
            web.post("/v1/quota/{subject}/grants", quotas.grant, expect_handler=_later),
            web.get("/v2", inference.server),
            web.get("/v2/health/live", inference.live),
            web.get("/v2/health/ready", inference.ready),
            web.get("/v2/models/{model}", inference.model),
            web.get("/v2/models/{model}/ready", inference.model_ready),
            web.post("/v2/models/{model}/infer", inference.infer, expect_handler=_later),
            web.get("/healthz", probes.healthz),
            web.get("/readyz", probes.readyz),
            web.get("/warmup", probes.timeline),
            web.post("/warmup", probes.warm),
            web.get("/metrics", probes.scrape),
            web.get("/openapi.json", static.named),
            web.get("/", static.index),
            web.post("/", events.take, expect_handler=_later),
            web.get("/page/{file}", static.named),
            web.get("/samples/{file}", static.named),
        ]
    )
    return app


async def _later(_: web.Request) -> None:
    """Leave `100 Continue` to whoever reads the body."""
