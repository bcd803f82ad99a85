"""The process: binds its port, becomes ready behind it, and stops without losing a request."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from typing import TYPE_CHECKING

from aiohttp import web

from function import assemble
from function.http.app import EDGE, build
from function.http.connection import Runner
from warmup.phase import Phase
from warmup.replica import Replica

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.settings import Settings

log = logging.getLogger("ember.server")


def serve(settings: Settings) -> int:
    """Serve until told to stop.

    Args:
        settings: the effective settings.

    Returns:
        The exit code: 0 after SIGTERM or SIGINT, `EX_UNAVAILABLE` (69) when the port cannot be
        bound or the replica failed.

    Raises:
        ManifestError: the manifest cannot be used.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    service = assemble.service(settings)
    failed = asyncio.Event()
    replica = Replica(service, lambda phase: failed.set() if phase is Phase.FAILED else None)
    app = build(settings, service, replica)
    runner = Runner(app, app[EDGE], shutdown_timeout=settings.drain_timeout_s)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, settings.host, settings.port).start()
        except OSError as error:
            facts = {"host": settings.host, "port": settings.port, "reason": error.strerror}
            log.error("cannot listen", extra=facts)  # noqa: TRY400 (the reason says it all)
            return os.EX_UNAVAILABLE
        log.info("listening", extra={"url": _url(runner.addresses[0])})
        warming = asyncio.create_task(replica.warm())
        await _stop_asked(failed, settings.drain_grace_s, replica)
        warming.cancel()
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await warming
        return os.EX_UNAVAILABLE if failed.is_set() else os.EX_OK
    finally:
        await runner.cleanup()
        service.close()


async def _stop_asked(failed: asyncio.Event, grace_s: float, replica: Replica) -> None:
    """Wait for a signal or a failure, then leave readiness and wait until nobody sends any more.

    Someone who presses Ctrl-C has no load balancer; a second signal of either kind ends the wait.
    """
    asked, at_once = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        log.info("stopping", extra={"signal": number.name})
        if asked.is_set() or number is signal.SIGINT:
            at_once.set()
        asked.set()
        replica.drain()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    waits = [asyncio.create_task(event.wait()) for event in (asked, failed)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(at_once.wait(), grace_s)


def _url(address: tuple[str, int]) -> str:
    host, port, *_ = address
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, where there is one."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
