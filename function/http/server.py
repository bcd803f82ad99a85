"""The process: binds its port, becomes ready behind it, and stops without losing a request.

What is heavy to import (aiohttp, OpenCV, ONNX Runtime: the better part of a second) is imported
when the port is already bound, so that early clients wait instead of being refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from typing import TYPE_CHECKING

from function.exits import Exit
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
        The exit code: 0 after SIGTERM or SIGINT, `Exit.UNAVAILABLE` when the port cannot be bound
        or the replica failed.

    Raises:
        ManifestError: the manifest cannot be used.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    stop = _Stop()
    try:
        sockets = _bind(settings.host, settings.port)
    except OSError as error:
        facts = {"host": settings.host, "port": settings.port, "reason": error.strerror}
        log.error("cannot listen", extra=facts)  # noqa: TRY400 (the reason says it all)
        return Exit.UNAVAILABLE
    log.info("listening", extra={"url": _url(sockets[0])})

    from aiohttp import web

    from function import assemble
    from function.http.app import EDGE, build
    from function.http.connection import Runner

    service = assemble.service(settings)
    replica = Replica(service, stop.on_phase)
    app = build(settings, service, replica)
    runner = Runner(app, app[EDGE], shutdown_timeout=settings.drain_timeout_s)
    await runner.setup()
    try:
        for each in sockets:
            await web.SockSite(runner, each).start()
        warming = asyncio.create_task(replica.warm())
        await stop.asked.wait()
        replica.drain()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.at_once.wait(), settings.drain_grace_s)
        warming.cancel()
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await warming
        return Exit.UNAVAILABLE if replica.phase is Phase.FAILED else 0
    finally:
        await runner.cleanup()
        service.close()


class _Stop:
    """Whether the process is to end: a signal came, or the replica has failed.

    Someone who presses Ctrl-C has no load balancer, so SIGINT needs no grace; a second signal of
    either kind ends it.
    """

    def __init__(self) -> None:
        self.asked, self.at_once = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)

    def on_phase(self, phase: Phase) -> None:
        """A failed replica ends; the platform starts another."""
        if phase is Phase.FAILED:
            self.asked.set()

    def _on_signal(self, number: signal.Signals) -> None:
        log.info("stopping", extra={"signal": number.name})
        if self.asked.is_set() or number is signal.SIGINT:
            self.at_once.set()
        self.asked.set()


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
