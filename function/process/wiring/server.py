"""Everything that serves, from settings: admission, background work, handlers, the application.

It imports what HTTP needs, so it is imported when the port already answers.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from function.background.jobs.erasure import Erasure
from function.background.jobs.runner import JobRunner, RunnerSettings
from function.background.jobs.stream_limits import StreamLimits
from function.background.swapper import BackgroundSwapper
from function.http.admission import HttpAdmission
from function.http.app import application
from function.http.body import BodyReader
from function.http.data import DataHandlers
from function.http.edge import Edge
from function.http.events import EventHandlers
from function.http.form_reader import FormReader
from function.http.inference import InferenceHandlers
from function.http.job_requests import JobRequests
from function.http.jobs import JobHandlers
from function.http.origins import Origins
from function.http.probes import ProbeHandlers, RateLimit
from function.http.quota import QuotaHandlers
from function.http.static import StaticFiles
from function.http.swaps import SwapHandlers
from function.http.uris import Uris
from function.process.background_tasks import BackgroundTasks
from function.process.wiring.admission import build_admission
from function.process.wiring.audit import kept_of_callers
from function.process.wiring.events import build_event_processor
from function.process.wiring.jobs import build_job_files, build_job_store
from function.process.wiring.trust import duties
from function.storage.storage import Storage
from function.telemetry.metrics import Metrics
from warmup.phase import Phase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiohttp import web

    from function.admission.admission import Admission
    from function.http.uris import Fetch
    from function.runtime.gpu.device_health import DeviceLostError
    from function.service.health import Health
    from function.settings import Settings
    from function.settings.requests import UriSettings
    from function.trust.audit.log import AuditLog
    from function.trust.trust import Trust


@dataclass(frozen=True, slots=True)
class WiredServer:
    """An application that is put together, and those of its parts that others ask.

    Attributes:
        app: the application.
        edge: answers what is no request.
        metrics: counts.
        bodies: reads bodies.
        jobs: runs jobs.
        admission: lets requests in.
        audit: writes down what is done.
        forced: when a replica that is ready may be warmed again.
    """

    app: web.Application
    edge: Edge
    metrics: Metrics
    bodies: BodyReader
    jobs: JobRunner
    admission: Admission
    audit: AuditLog
    forced: RateLimit


def build_server(settings: Settings, health: Health, fetch: Fetch | None = None) -> WiredServer:
    """Put together everything that serves.

    Args:
        settings: all of them.
        health: of the service that finds and swaps, and of its replica, which is repaired when a
            model cannot be loaded.
        fetch: gets the images that a JSON request names by URI; None for the storage that the
            settings describe.

    Raises:
        SettingsError: what the settings name for a part cannot be used.
    """
    service, replica = health.service, health.replica
    requests = settings.requests
    admission = build_admission(settings.access, settings.redis, requests, lambda: service.slots)
    trust, audit = service.trust, service.trust.audit
    trust.duties = duties(admission.policy)
    storage = _storage(settings.uris)
    swapper = BackgroundSwapper(service, admission, replica)
    store = build_job_store(settings.redis)
    files = build_job_files(
        settings.jobs,
        settings.redis,
        timeout_s=settings.uris.uri_timeout_s,
        body_bytes=requests.max_body_bytes,
    )
    runner = JobRunner(
        store,
        files,
        storage=storage,
        swap=swapper.swap,
        refund=admission.quota.refund,
        lanes=swapper.lanes,
        settings=RunnerSettings(settings.jobs.job_lease_s, settings.jobs.job_keep_s, service.slots),
    )
    processor = build_event_processor(
        settings.events,
        settings.access,
        settings.redis,
        requests,
        storage=storage,
        swap=swapper.swap,
        gate=admission.pause_s,
        slots=service.slots,
    )
    background = BackgroundTasks(processor, runner, storage, settings.process.drain_timeout_s)
    metrics = Metrics(replica, service, admission, lambda: health.stuck)
    runner.listeners.append(metrics.on_job)
    runner.watchers.append(metrics.on_jobs)
    if processor:
        processor.listeners.append(metrics.on_event)
    service.on_load_error = replica.repair

    edge = Edge(
        metrics,
        leaving=lambda: replica.phase is Phase.DRAINING,
        degraded=lambda: service.engines.degraded,
        origins=Origins.of(settings.address, settings.access),
    )
    http_admission = HttpAdmission(admission)
    bodies = BodyReader(http_admission.body, requests.max_body_bytes, requests.body_timeout_s)
    fetch = fetch or Uris(storage, requests.max_body_bytes, settings.uris.uri_buckets)
    forms = FormReader(bodies, fetch, http_admission.body)
    jobs = JobHandlers(
        JobRequests(store, files, runner.wake, forms, admission.quota, settings.jobs, trust),
        runner,
        store,
        files,
        admission=http_admission,
        load=admission.load,
        replica=replica,
        stream_s=requests.request_timeout_s,
        streams=StreamLimits(settings.jobs.job_streams, settings.jobs.job_caller_streams),
    )
    more = kept_of_callers(settings.gate)
    senders = frozenset(settings.events.event_senders)
    probes = ProbeHandlers(service, replica, metrics, health, http_admission)
    swaps = SwapHandlers(service, replica, http_admission, forms, jobs)
    app = application(
        edge,
        swaps=swaps,
        inference=InferenceHandlers(swaps, health),
        jobs=jobs,
        data=DataHandlers(http_admission, Erasure(store, files, runner.end, audit, more)),
        quotas=QuotaHandlers(http_admission, forms, admission.quota),
        events=EventHandlers(processor, replica, http_admission, bodies, senders),
        probes=probes,
        static=StaticFiles(),
    )
    app.on_startup.append(partial(_fail_without_gpu, health))
    app.cleanup_ctx.append(_trusted(trust))
    app.cleanup_ctx.append(admission.running)
    app.on_shutdown.append(background.stopping)
    app.cleanup_ctx.append(background.running)
    return WiredServer(app, edge, metrics, bodies, runner, admission, audit, probes.forced)


def _trusted(trust: Trust) -> Callable[[web.Application], AsyncIterator[None]]:
    """Keeps lists and the audit open while the application runs."""

    async def running(_: web.Application) -> AsyncIterator[None]:
        async with trust.running():
            yield

    return running


def _storage(uris: UriSettings) -> Storage:
    return Storage(
        networks=uris.uri_networks, folders=uris.uri_folders, timeout_s=uris.uri_timeout_s
    )


async def _fail_without_gpu(health: Health, _: web.Application) -> None:
    """Let the replica fail when its GPU is lost, which any thread may find out."""
    device, replica = health.service.engines.device_health, health.replica
    loop = asyncio.get_running_loop()

    def lost(error: DeviceLostError) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(replica.fail, error)

    device.on_lost = lost
    if device.error:  # while HTTP was being imported
        replica.fail(device.error)
