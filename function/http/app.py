"""The application: addresses to handlers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from function.admission import setup
from function.background.events import setup as desks
from function.background.jobs import setup as jobs_setup
from function.background.jobs.runner import JobRunner
from function.background.jobs.stream_limits import StreamLimits
from function.background.swapper import BackgroundSwapper, BackgroundTasks
from function.http.admission import Admission
from function.http.body import BodyReader
from function.http.edge import Edge
from function.http.events import Events
from function.http.job_requests import JobRequests
from function.http.jobs import ID, Jobs
from function.http.origins import Origins
from function.http.probes import Probes, RateLimit
from function.http.quota import Quotas
from function.http.static import Static
from function.http.swaps import Swaps
from function.http.uris import Uris
from function.storage import storage as storages
from function.telemetry.metrics import Metrics
from warmup.phase import Phase

if TYPE_CHECKING:
    from function.http.uris import Fetch
    from function.runtime.gpu.lost import DeviceLostError
    from function.service.health import Health
    from function.settings import Settings

FORCED = web.AppKey("forced", RateLimit)
EDGE = web.AppKey("edge", Edge)
METRICS = web.AppKey("metrics", Metrics)
LIMITS = web.AppKey("limits", BodyReader)
WORKS = web.AppKey("works", JobRunner)


def build(settings: Settings, health: Health, fetch: Fetch | None = None) -> web.Application:
    """Put the application together.

    Args:
        settings: the limits of requests.
        health: of the service that finds and swaps, and of its replica, which is repaired when a
            model cannot be loaded.
        fetch: gets the images that a JSON request names by URI; None for the storage that the
            settings describe.

    Raises:
        SettingsError: what the settings name for admission cannot be used.
    """
    service, replica = health.service, health.replica
    parts = setup.parts(settings, lambda: service.places)
    storage = storages.of(settings)
    unattended = BackgroundSwapper(service, parts, replica)
    works = jobs_setup.works(
        settings,
        storage=storage,
        swap=unattended.swap,
        refund=parts.quota.refund,
        lanes=unattended.lanes,
        places=service.places,
    )
    metrics = Metrics(replica, service, parts, lambda: health.stuck)
    edge = Edge(
        metrics,
        leaving=lambda: replica.phase is Phase.DRAINING,
        degraded=lambda: service.engines.degraded,
        origins=Origins.of(settings),
    )
    service.on_load_error = replica.repair
    door = Admission(parts, settings.request_timeout_s)
    fetch = fetch or Uris(storage, settings.max_body_bytes, settings.uri_buckets)
    limits = BodyReader(door, settings.max_body_bytes, settings.body_timeout_s)
    ordering = JobRequests(
        works,
        limits,
        fetch,
        settings.job_limit,
        settings.output_buckets,
        settings.webhook_secret,
    )
    seats = StreamLimits(settings.job_streams, settings.job_caller_streams)
    jobs = Jobs(ordering, replica, settings.request_timeout_s, seats)
    calls = Swaps(service, replica, limits, fetch, jobs)
    quotas = Quotas(limits, fetch)
    desk = desks.desk(settings, storage, unattended.swap, unattended.gate, service.places)
    events = Events(desk, replica, limits, frozenset(settings.event_senders))
    probes = Probes(service, replica, metrics, health, door)
    static = Static()
    app = web.Application(middlewares=[edge.middleware])
    app.on_startup.append(partial(_mind_the_gpu, health))
    app[EDGE] = edge
    app[FORCED] = probes.forced
    app[METRICS] = metrics
    app[LIMITS] = limits
    app[WORKS] = works
    if desk:
        desk.listeners.append(metrics.on_event)
    works.listeners.append(metrics.on_job)
    works.watchers.append(metrics.on_jobs)
    app.add_routes(
        [
            web.post("/v1/swap", calls.swap, expect_handler=_later),
            web.post("/v1/faces", calls.faces, expect_handler=_later),
            web.get("/v1/jobs", jobs.some),
            web.put(f"/v1/jobs/{{id:{ID}}}", jobs.put, expect_handler=_later),
            web.get(f"/v1/jobs/{{id:{ID}}}", jobs.get),
            web.delete(f"/v1/jobs/{{id:{ID}}}", jobs.delete),
            web.get(f"/v1/jobs/{{id:{ID}}}/events", jobs.events),
            web.get(f"/v1/jobs/{{id:{ID}}}/results/{{place:[0-9]{{1,4}}}}", jobs.result),
            web.get("/v1/quota", quotas.standing),
            web.post("/v1/quota/{subject}/grants", quotas.grant, expect_handler=_later),
            web.get("/healthz", probes.healthz),
            web.get("/readyz", probes.readyz),
            web.get("/warmup", probes.timeline),
            web.post("/warmup", probes.warm),
            web.get("/metrics", probes.scrape),
            web.get("/openapi.json", static.openapi),
            web.get("/", static.index),
            web.post("/", events.take, expect_handler=_later),
            web.get("/page/{file}", static.named),
            web.get("/samples/{file}", static.named),
        ]
    )
    app.cleanup_ctx.append(parts.running)
    beside = BackgroundTasks(desk, works, storage, settings.drain_timeout_s)
    app.on_shutdown.append(beside.stopping)
    app.cleanup_ctx.append(beside.running)
    return app


async def _later(_: web.Request) -> None:
    """Leave `100 Continue` to whoever reads the body."""


async def _mind_the_gpu(health: Health, _: web.Application) -> None:
    """Let the replica fail when its GPU is lost, which any thread may find out."""
    fate, replica, loop = health.service.engines.fate, health.replica, asyncio.get_running_loop()

    def lost(error: DeviceLostError) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(replica.fail, error)

    fate.on_lost = lost
    if fate.error:  # while HTTP was being imported
        replica.fail(fate.error)
