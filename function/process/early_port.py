"""The first answers: while aiohttp is still being imported, the process is alive and says so.

Only `/healthz` is answered here. Whatever else comes waits, and goes to the real server as soon as
there is one, which then answers it as if nothing had been before.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

_HEALTH = re.compile(rb"(GET|HEAD) /healthz(?:\?\S*)? HTTP/1\.[01]\r\n")
_ALIVE = b'{"status": "alive", "reason": null}'
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
    b"Server: ember\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(_ALIVE)
)
_END = b"\r\n\r\n"
_MOST = 64 * 1024
"""Bytes without an end of the head after which a client is left to the real server."""


class EarlyPort:
    """Listens until there is a real server."""

    def __init__(self) -> None:
        self._open: set[_Connection] = set()
        self._servers: list[asyncio.Server] = []

    async def listen(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections of these sockets, which stay usable for the real server."""
        loop = asyncio.get_running_loop()
        for each in sockets:
            self._servers.append(await loop.create_server(self._connect, sock=each.dup()))

    def hand_over(self, real: Callable[[], asyncio.Protocol]) -> None:
        """Accept nothing more, and give what is open to the protocols that `real` makes."""
        for server in self._servers:
            server.close()
        for connection in [*self._open]:
            connection.hand_over(real())
        self._open.clear()

    def _connect(self) -> _Connection:
        return _Connection(self._open)


class _Connection(asyncio.Protocol):
    """One client, in `waiting` as long as it is not answered."""

    def __init__(self, waiting: set[_Connection]) -> None:
        self._waiting = waiting
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._waiting.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (there is no more to do)
        self._waiting.discard(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) < _MOST and _END not in self._received:
            return
        asked = _HEALTH.match(self._received)
        if asked:
            self._waiting.discard(self)
            self._transport.write(_HEAD + _ALIVE * (asked[1] == b"GET"))
            self._transport.close()
        else:
            self._transport.pause_reading()

    def hand_over(self, real: asyncio.Protocol) -> None:
        """Go on as a connection of the real server, from the first byte."""
        self._transport.set_protocol(real)
        real.connection_made(self._transport)
        if self._received:
            real.data_received(bytes(self._received))
        self._transport.resume_reading()
