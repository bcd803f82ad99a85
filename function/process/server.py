"""The process: binds its port, becomes ready behind it, and stops without losing a request.

Everything heavy is imported when the port already answers that the process is alive. HTTP proper
comes after the runtime, so that models are loaded and run while the rest is imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Any, cast

from function.exits import Exit
from function.process import garbage, memory_watch
from function.process.early_port import EarlyPort
from function.process.stop import StopRequest
from function.service.health import Health
from function.tasks import end
from warmup import heartbeat, upgrade
from warmup.replica import Replica
from warmup.retry import Retry
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from function.settings import Settings
    from warmup.timeline import Timeline

log = logging.getLogger("ember.server")

_LOOPS_OF_AN_ANSWER = 20  # of the event loop: accept, read, handle, write, with room to spare


def serve(settings: Settings, timeline: Timeline) -> int:
    """Serve until told to stop.

    Args:
        settings: the effective settings.
        timeline: gets the spans of the start.

    Returns:
        The exit code: 0 after SIGTERM or SIGINT, `Exit.UNAVAILABLE` when the port cannot be bound
        or the replica failed, `Exit.CONFIG` when what the settings name cannot be used,
        `Exit.AGAIN` when it held too much memory.

    Raises:
        ManifestError: the manifest cannot be used.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        code, at_once = runner.run(_serve(settings, timeline))
    if at_once:
        # Python would wait for threads that load or compute for nobody, and a stuck one never ends;
        # what CUDA's libraries do at their end, where the GPU is lost, may end in anything.
        log.info("ending at once")
        logging.shutdown()
        os._exit(code)
    return code


async def _serve(settings: Settings, timeline: Timeline) -> tuple[int, bool]:
    """The exit code, and whether the process ends without what Python does at its end."""
    stop = StopRequest()
    process, address = settings.process, settings.address
    timeline.pod(process.pod_created, process.pod_scheduled)
    try:
        with timeline.span("bind"):
            sockets = _bind(address.host, address.port)
    except OSError as error:
        facts = {"host": address.host, "port": address.port, "reason": error.strerror}
        log.error("cannot listen", extra=facts)  # noqa: TRY400 (the reason says it all)
        return Exit.UNAVAILABLE, False
    log.info("listening", extra={"url": _url(sockets[0])})

    early = EarlyPort()
    await early.listen(sockets)
    await _answer_early_probes()

    from function.process.wiring.service import build_service

    service = build_service(settings, timeline)
    replica = Replica(service, Retry(settings.replica.warmup_retry_s), timeline)
    replica.listeners += [stop.on_phase, garbage.on_phase]
    health = Health(replica, service, settings.replica.stuck_s)
    service.imports.begin(
        "runtime", "http", *(["otlp"] if settings.telemetry.traces else []), "work"
    )
    replica.start()
    await service.imports.have("http")

    from aiohttp import web

    from function.http.connection import Runner
    from function.process.wiring.server import build_server
    from function.process.wiring.telemetry import record_spans

    try:
        end_recording = await record_spans(settings.telemetry, service.imports)
        server = build_server(settings, health)
    except SettingsError as error:
        print(f"Error: {error}", file=sys.stderr)
        service.close()
        return Exit.CONFIG, service.busy
    runner = Runner(
        server.app,
        server.edge,
        shutdown_timeout=process.drain_timeout_s,
        answer_timeout=settings.requests.answer_timeout_s,
    )
    await runner.setup()
    try:
        for each in sockets:
            await web.SockSite(runner, each).start()
        early.hand_over(cast("web.Server", runner.server))
        async with _running(
            memory_watch.watch(settings.replica.memory_soft_limit, stop.on_memory),
            memory_watch.trim(),
            heartbeat.keep(service, replica, settings.replica.heartbeat_s, server.metrics.beat)
            if settings.replica.heartbeat_s
            else None,
            upgrade.follow(service, replica) if service.upgrades else None,
        ):
            await stop.asked.wait()
        replica.drain()
        if replica.served or stop.code:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(process.drain_grace_s):
                    await stop.at_once.wait()
    finally:
        await runner.cleanup()
        service.close()
        await asyncio.to_thread(end_recording)
    return stop.code, service.busy or service.engines.device_health.error is not None


async def _answer_early_probes() -> None:
    """Let the loop answer the probes that came before anybody listened.

    What comes next imports in threads, and a library that is being opened holds the interpreter.
    """
    for _ in range(_LOOPS_OF_AN_ANSWER):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def _running(*coroutines: Coroutine[Any, Any, None] | None) -> AsyncIterator[None]:
    """Run these while the body runs; None among them is none."""
    tasks = [asyncio.create_task(each) for each in coroutines if each]
    try:
        yield
    finally:
        await end(*tasks)


def _bind(host: str, port: int) -> list[socket.socket]:
    """Listening sockets on every address of the host, as `localhost` may have two."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    wanted = {(family, address): None for family, _, _, _, address in found}
    return [socket.create_server(address, family=family) for family, address in wanted]


def _url(listening: socket.socket) -> str:
    host, port, *_ = listening.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, where there is one."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
