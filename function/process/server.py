"""The process: binds its port, becomes ready behind it, and stops without losing a request.

Everything heavy is imported when the port already answers that the process is alive. HTTP proper
comes after the runtime, so that models are loaded and run while the rest is imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any, cast

from function.exits import Exit
from function.extras import needing
from function.process.early_port import EarlyPort
from function.runtime import heap, memory
from function.service.health import Health
from function.tasks import end
from function.telemetry import spans
from warmup import heartbeat, upgrade
from warmup.phase import Phase
from warmup.replica import Replica
from warmup.retry import Retry
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from function.runtime.imports import Imports
    from function.settings import Settings
    from warmup.timeline import Timeline

log = logging.getLogger("ember.server")

_TURNS_OF_AN_ANSWER = 20  # of the event loop: accept, read, handle, write, with room to spare
_READ_MEMORY_S, _HIGH_READINGS = 1.0, 3
_TRIM_S = 2.0


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
        code, busy = runner.run(_serve(settings, timeline))
    if busy:
        # Python would wait for threads that load or compute for nobody, and a stuck one never ends.
        log.info("ending while a thread is at work")
        logging.shutdown()
        os._exit(code)
    return code


async def _serve(settings: Settings, timeline: Timeline) -> tuple[int, bool]:
    """See `serve`; also whether threads are still at work."""
    stop = _Stop()
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
    await _answer_who_waits()

    from function.process.wiring.service import build_service

    service = build_service(settings, timeline)
    replica = Replica(service, Retry(settings.replica.warmup_retry_s), timeline)
    replica.listeners += [stop.on_phase, _collect_garbage]
    health = Health(replica, service, settings.replica.stuck_s)
    service.imports.begin(
        "runtime", "http", *(["otlp"] if settings.telemetry.traces else []), "work"
    )
    replica.start()
    await service.imports.have("http")

    from aiohttp import web

    from function.http.connection import Runner
    from function.process.wiring.server import build_server

    try:
        recording = await _recorded(settings.telemetry.traces, service.imports)
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
        async with _background(
            _memory(settings.replica.memory_soft_limit, stop.on_memory),
            _trim(),
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
        await asyncio.to_thread(recording)
    return stop.code, service.busy


async def _recorded(traces: str | None, imports: Imports) -> Callable[[], None]:
    """Send spans to the collector at `traces`, if there is one; what ends that.

    Raises:
        SettingsError: the extra is not there, or the SDK's own variables are wrong.
    """
    if traces is None:
        return lambda: None
    try:
        with needing("EMBER_TRACES", "otel"):
            await imports.have("otlp")
        from function.telemetry.otlp import Otlp

        recorder = Otlp(traces)
    except ValueError as error:
        raise SettingsError([f"A variable of OpenTelemetry (OTEL_…) is wrong: {error}"]) from None
    spans.record_with(recorder)
    return recorder.close


def _collect_garbage(phase: Phase) -> None:
    """Begin to, when the start is over; what it has made stays, and is not looked at again."""
    if phase in {Phase.READY, Phase.FAILED, Phase.DRAINING} and not gc.isenabled():
        gc.freeze()
        gc.enable()


async def _answer_who_waits() -> None:
    """Let the loop answer the probes that came before anybody listened.

    What comes next imports in threads, and a library that is being opened holds the interpreter.
    """
    for _ in range(_TURNS_OF_AN_ANSWER):
        await asyncio.sleep(0)


class _Stop:
    """Whether the process is to end, and with which exit code.

    Someone who presses Ctrl-C has no load balancer, so SIGINT needs no grace; a second signal of
    either kind ends it.
    """

    def __init__(self) -> None:
        self.asked, self.at_once = asyncio.Event(), asyncio.Event()
        self.code = 0
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)

    def on_phase(self, phase: Phase) -> None:
        """A failed replica ends; the platform starts another."""
        if phase is Phase.FAILED:
            self._because(Exit.UNAVAILABLE)

    def on_memory(self) -> None:
        """One that grows too large ends before the kernel kills it in the middle of a request."""
        self._because(Exit.AGAIN)

    def _because(self, code: Exit) -> None:
        if not self.asked.is_set():
            self.code = code
            self.asked.set()

    def _on_signal(self, number: signal.Signals) -> None:
        log.info("stopping", extra={"signal": number.name})
        if self.asked.is_set() or number is signal.SIGINT:
            self.at_once.set()
        self.asked.set()


@contextlib.asynccontextmanager
async def _background(*works: Coroutine[Any, Any, None] | None) -> AsyncIterator[None]:
    """Run these beside the body; they end with it."""
    tasks = [asyncio.create_task(work) for work in works if work]
    try:
        yield
    finally:
        await end(*tasks)


async def _memory(soft_limit: float, too_much: Callable[[], None]) -> None:
    """Watch the memory that the process holds; one high reading alone may be a large photo."""
    limit = soft_limit if soft_limit >= 1 else soft_limit * (memory.limit() or 0)
    high = 0
    while limit and high < _HIGH_READINGS:
        await asyncio.sleep(_READ_MEMORY_S)
        held = memory.held()
        high = high + 1 if held > limit else 0
    if limit:
        log.error("too much memory", extra={"held": held, "limit": int(limit)})
        too_much()


async def _trim() -> None:
    """Now and then give back what photos have used, so that the process does not seem to grow."""
    while True:
        await asyncio.sleep(_TRIM_S)
        await asyncio.to_thread(heap.trim)


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
