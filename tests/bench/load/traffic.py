"""The load generator: fixed request bytes, one event loop, hardly anything done with an answer.

A closed loop has so many clients that each send the next request at once. An open loop sends at
moments that were drawn before, whatever the server does; there a time runs from the moment at which
a request was to be sent, so that nothing that holds the generator up is left out.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import uvloop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

GONE, REFUSED = 0, 503
"""Instead of a status: the connection ended, or no answer came in the end."""


@dataclass(slots=True)
class Stream:
    """What came of some requests.

    Attributes:
        seconds: for how long those came, or were answered, that count.
        answers: status and seconds.
        cpu: seconds of CPU of the server for each swap.
        again: statuses of those that were refused and came again when they were told to.
    """

    seconds: float
    answers: list[tuple[int, float]] = field(default_factory=list)
    cpu: float = 0.0
    again: list[int] = field(default_factory=list)

    @property
    def times(self) -> list[float]:
        """Seconds of each swap."""
        return [took for status, took in self.answers if status == 200]

    @property
    def rate(self) -> float:
        """Swaps per second."""
        return len(self.times) / self.seconds

    @property
    def refused(self) -> int:
        """Requests that were answered, but not with a swap."""
        return sum(status not in (200, GONE) for status, _ in self.answers)

    @property
    def lost(self) -> int:
        """Requests that were not answered at all."""
        return sum(status == GONE for status, _ in self.answers)

    @property
    def let_in(self) -> float:
        """Which part of those that came again was not refused again."""
        return sum(status != REFUSED for status in self.again) / max(1, len(self.again))

    def add(self, more: Stream) -> None:
        """Count what came of further requests as well."""
        self.seconds += more.seconds
        self.answers += more.answers
        self.again += more.again

    def goodput(self, deadline: float) -> float:
        """Swaps per second that came in time."""
        return sum(took <= deadline for took in self.times) / self.seconds


class _Connection(asyncio.Protocol):
    """One kept-alive connection with one request at a time."""

    def __init__(self) -> None:
        self._seen = bytearray()
        self._length = 0
        self._answer: asyncio.Future[int] | None = None
        self.open = False
        self.again_s = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self.open = transport, True

    def send(self, request: bytes) -> asyncio.Future[int]:
        """Send a request; gives the status of its answer when that is there whole."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if not self._length and (head := self._seen.find(b"\r\n\r\n")) >= 0:
            self._length = head + 4 + _number(bytes(self._seen[:head]), b"content-length:")
            self.again_s = _number(bytes(self._seen[:head]), b"retry-after:", 0)
        if self._length and len(self._seen) >= self._length:
            status = int(self._seen[9:12])
            self._seen.clear()
            self._length = 0
            self._end(status)

    def connection_lost(self, _: Exception | None) -> None:
        self.open = False
        self._end(GONE)

    def close(self) -> None:
        """Hang up."""
        self.open = False
        self._transport.close()

    def _end(self, status: int) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_result(status)


def _number(head: bytes, name: bytes, missing: int | None = None) -> int:
    """The number in a header."""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(name):
            return int(line[len(name) :])
    if missing is None:
        raise RuntimeError(f"an answer without {name.decode()} {head!r}")
    return missing


class Traffic:
    """One run of the event loop against one server; all times are seconds.

    Args:
        port: of the server.
        patience: how long an answer is awaited.
    """

    def __init__(self, port: int, patience: float) -> None:
        self._port, self._patience = port, patience

    def run(self, *jobs: Callable[[Traffic], Awaitable[Stream]]) -> tuple[list[Stream], float]:
        """What came of some jobs at the same time, and the CPU time of doing them per second."""

        async def all_of_them() -> list[Stream]:
            return await asyncio.gather(*(job(self) for job in jobs))

        began, busy = time.perf_counter(), time.process_time()
        streams = uvloop.run(all_of_them())
        return streams, (time.process_time() - busy) / (time.perf_counter() - began)

    async def closed(
        self, request: bytes, clients: int, seconds: float, pause: float = 0.0
    ) -> Stream:
        """A closed loop, from the first request to the last answer.

        Args:
            request: its bytes.
            clients: how many there are.
            seconds: how long they send.
            pause: how long each waits before it sends again.
        """
        loop = asyncio.get_running_loop()
        stream, start = Stream(0.0), loop.time()

        async def client() -> None:
            connection = await self._connect()
            while loop.time() < start + seconds:
                if not connection.open:
                    connection = await self._connect()
                began = loop.time()
                status = await self._ask(connection, request)
                stream.answers.append((status, loop.time() - began))
                if pause or status != 200:
                    await asyncio.sleep(pause or 0.05)
            connection.close()

        await asyncio.gather(*(client() for _ in range(clients)))
        stream.seconds = loop.time() - start
        return stream

    async def open(
        self,
        request: bytes,
        rate: float,
        seconds: float,
        seed: int = 0,
        *,
        again: bool = False,
    ) -> Stream:
        """Poisson arrivals; the first quarter does not count.

        Args:
            request: its bytes.
            rate: requests per second.
            seconds: how long they are sent.
            seed: of the arrivals.
            again: whether those that are refused come again, once, when they are told to.
        """
        loop, chance = asyncio.get_running_loop(), random.Random(seed)
        idle = [await self._connect() for _ in range(16)]
        tasks = []
        start = loop.time()
        counts, stream = start + seconds / 4, Stream(seconds * 3 / 4)
        end, due = start + seconds, start + chance.expovariate(rate)

        async def one(due: float) -> None:
            connection = next((each for each in idle if each.open), None)
            if connection:
                idle.remove(connection)
            else:
                connection = await self._connect()
            status = await self._ask(connection, request)
            again_s = connection.again_s
            idle.append(connection)
            if due >= counts:
                stream.answers.append((status, loop.time() - due))
            if again and status == REFUSED and again_s:
                await asyncio.sleep(again_s)
                other = await self._connect()
                stream.again.append(await self._ask(other, request))
                other.close()

        while due < end:
            await asyncio.sleep(due - loop.time())
            tasks.append(loop.create_task(one(due)))
            due += chance.expovariate(rate)
        await asyncio.gather(*tasks)
        for connection in idle:
            connection.close()
        return stream

    async def _ask(self, connection: _Connection, request: bytes) -> int:
        """The status of the answer to a request."""
        try:
            async with asyncio.timeout(self._patience):
                return await connection.send(request)
        except TimeoutError:
            connection.close()
            return GONE

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, "127.0.0.1", self._port)
        return connection
