"""Commands to Redis: over which connection, for how long, and what may be sent twice."""

from __future__ import annotations

import asyncio
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redis.asyncio.connection import ConnectionPool, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    ConnectionError,  # noqa: A004 (the library calls it so)
    OutOfMemoryError,
    RedisError,
    ResponseError,
)

from function.redis.timeout import timeout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_IDLE_S = 1.0
"""After how long without use a connection is tried before it is used: who closes idle ones, or
drops them in silence, waits longer."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """How many bytes a Redis holds, and how many it may; None for any number."""

    used: int
    limit: int | None


class Client:
    """Asks Redis, over a few connections, which are opened when they are first needed.

    How long a question may take is counted from when it is sent: neither the wait for a free
    connection counts, nor the time in which this process is busy with other things.

    Args:
        url: `redis://` or `rediss://` (TLS), with user, password and database if any.
        timeout_s: how long a connection may take to open, and a question to be answered.
        connections: the most at once; further questions wait.
        text: whether answers are str, not bytes.

    Raises:
        ValueError: it is no such address.
    """

    def __init__(self, url: str, timeout_s: float, connections: int, *, text: bool = False) -> None:
        self._timeout_s = timeout_s
        self._free = asyncio.Semaphore(connections)
        # With a timeout of its own, redis-py writes in `asyncio.wait_for`, which on Python 3.11 can
        # lose a cancel. With protocol 3 it does not look whether the other side has closed.
        ours: dict[str, Any] = {
            "max_connections": connections,
            "decode_responses": text,
            "socket_timeout": None,
            "socket_connect_timeout": None,
            "protocol": 2,
            "health_check_interval": _IDLE_S,
            "retry": Retry(NoBackoff(), 0),
        }
        self._pool = ConnectionPool(**{**dict[str, Any](parse_url(url)), **ours})

    async def execute(
        self, *words: str | bytes | int, timeout_factor: float = 1.0, idempotent: bool = False
    ) -> Any:
        """The answer to one command.

        A connection that is found dead before anything is sent is replaced. One that breaks later
        may have carried the command, which is then sent again only where that does no harm.

        Args:
            words: the command.
            timeout_factor: how many times the usual time it may take.
            idempotent: whether to be asked twice is the same as once.

        Raises:
            RedisError, OSError: Redis cannot be reached, or refuses.
            TimeoutError: it does not answer in time.
        """
        async with self._free:
            if idempotent:
                try:
                    return await self._execute(words, timeout_factor)
                except (ConnectionError, OSError) as error:
                    if isinstance(error, TimeoutError):
                        raise
            return await self._execute(words, timeout_factor)

    async def memory(self) -> MemoryUse:
        """How full Redis is; one that does not say counts as empty."""
        try:
            found = await self.execute("INFO", "memory", idempotent=True)
        except ResponseError:
            return MemoryUse(0, None)
        text = found.decode() if isinstance(found, bytes) else str(found)
        used, limit = (re.search(rf"\b{name}:(\d+)", text) for name in ("used_memory", "maxmemory"))
        return MemoryUse(int(used[1]) if used else 0, int(limit[1]) or None if limit else None)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    async def _execute(self, words: Sequence[str | bytes | int], timeout_factor: float) -> Any:
        connection = await self._alive()
        try:
            async with timeout(self._timeout_s * timeout_factor):
                await connection.send_command(*words, check_health=False)
                return await connection.read_response()
        finally:
            await self._pool.release(connection)

    async def _alive(self) -> Any:
        """A connection of the pool that Redis has not closed, and that is not dead in silence."""
        for _ in range(2):  # so that the loop has seen which connections were closed
            await asyncio.sleep(0)
        async with timeout(self._timeout_s):
            connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        try:
            try:
                async with timeout(self._timeout_s):
                    await connection.check_health()
            except (RedisError, OSError):
                await connection.disconnect(nowait=True)
                async with timeout(self._timeout_s):
                    await connection.connect()
        except BaseException:
            await self._pool.release(connection)
            raise
        return connection


@contextmanager
def failures(unavailable: type[Exception], full: type[Exception] | None = None) -> Iterator[None]:
    """Raise an exception of the caller's own in place of any that Redis leads to.

    Args:
        unavailable: raised when Redis cannot be reached, refuses, or does not answer in time; the
            reason is its text.
        full: raised when its memory is full; left out, that is `unavailable` as well.
    """
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        if full and is_full(error):
            raise full from error
        raise unavailable(type(error).__name__) from error


def is_full(error: BaseException) -> bool:
    """Whether Redis has refused because its memory is full (`maxmemory`)."""
    if isinstance(error, OutOfMemoryError):
        return True
    return isinstance(error, ResponseError) and "OOM command not allowed" in str(error)
