"""Questions to the Redis that replicas share."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redis.asyncio.connection import ConnectionPool, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    ConnectionError,  # noqa: A004 (the library calls it so)
    NoScriptError,
    OutOfMemoryError,
    RedisError,
    ResponseError,
)

from function.patience import within

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_IDLE_S = 1.0
"""After how long without use a connection is tried before it is used: who closes idle ones, or
drops them in silence, waits longer."""


@dataclass(frozen=True, slots=True)
class Memory:
    """How full a Redis is, in bytes: what it holds, and what it may; None for any amount."""

    used: int
    most: int | None


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

    async def ask(
        self, *words: str | bytes | int, patience: float = 1.0, harmless: bool = False
    ) -> Any:
        """The answer to one command.

        A connection that is found dead before anything is sent is replaced. One that breaks later
        may have carried the command, which is then sent again only where that does no harm.

        Args:
            words: the command.
            patience: how many times the usual time it may take.
            harmless: whether to be asked twice is the same as once.

        Raises:
            RedisError, OSError: Redis cannot be reached, or refuses.
            TimeoutError: it does not answer in time.
        """
        async with self._free:
            if harmless:
                try:
                    return await self._ask(words, patience)
                except (ConnectionError, OSError) as error:
                    if isinstance(error, TimeoutError):
                        raise
            return await self._ask(words, patience)

    async def memory(self) -> Memory:
        """How full Redis is."""
        try:
            found = await self.ask("INFO", "memory", harmless=True)
        except ResponseError:  # some do not tell
            return Memory(0, None)
        text = found.decode() if isinstance(found, bytes) else str(found)
        used, most = (re.search(rf"\b{name}:(\d+)", text) for name in ("used_memory", "maxmemory"))
        return Memory(int(used[1]) if used else 0, int(most[1]) or None if most else None)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    async def _ask(self, words: Sequence[str | bytes | int], patience: float) -> Any:
        connection = await self._alive()
        try:
            async with within(self._timeout_s * patience):
                await connection.send_command(*words, check_health=False)
                return await connection.read_response()
        finally:
            await self._pool.release(connection)

    async def _alive(self) -> Any:
        """A connection of the pool that Redis has not closed, and that is not dead in silence."""
        for _ in range(2):  # so that the loop has seen which connections were closed
            await asyncio.sleep(0)
        async with within(self._timeout_s):
            connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        try:
            try:
                async with within(self._timeout_s):
                    await connection.check_health()
            except (RedisError, OSError):
                await connection.disconnect(nowait=True)
                async with within(self._timeout_s):
                    await connection.connect()
        except BaseException:
            await self._pool.release(connection)
            raise
        return connection


class Script:
    """A Lua script; each call of it is one decision, atomic, and one round trip.

    Args:
        client: asks.
        path: the script.
    """

    def __init__(self, client: Client, path: Path) -> None:
        self._client, self._text = client, path.read_bytes()
        self._sha = hashlib.sha1(self._text).hexdigest()  # noqa: S324 (what Redis calls it)

    async def __call__(
        self,
        keys: Sequence[str],
        arguments: Sequence[str | bytes | int],
        *,
        harmless: bool = False,
    ) -> list[Any]:
        """The answer, a list; see `Client.ask`."""
        words = (len(keys), *keys, *arguments)
        try:
            return list(await self._client.ask("EVALSHA", self._sha, *words, harmless=harmless))
        except NoScriptError:  # nothing was done
            return list(await self._client.ask("EVAL", self._text, *words, harmless=harmless))


class Decisions:
    """A script and connections of its own, for who knows one error of Redis only.

    Args:
        url: as of `Client`.
        timeout_s: likewise.
        connections: likewise.
        path: the script.
        silent: what is raised when there is no answer in time; the reason is its text.

    Raises:
        ValueError: the address is none.
    """

    def __init__(
        self, url: str, timeout_s: float, connections: int, path: Path, silent: type[Exception]
    ) -> None:
        self._client, self._silent = Client(url, timeout_s, connections, text=True), silent
        self._script = Script(self._client, path)

    async def __call__(
        self, keys: Sequence[str], arguments: Sequence[str | int], *, harmless: bool = False
    ) -> list[Any]:
        """The answer; see `Client.ask`."""
        try:
            return await self._script(keys, arguments, harmless=harmless)
        except (RedisError, OSError, TimeoutError) as error:
            raise self._silent(type(error).__name__) from error

    async def memory(self) -> Memory:
        """How full Redis is."""
        try:
            return await self._client.memory()
        except (RedisError, OSError, TimeoutError) as error:
            raise self._silent(type(error).__name__) from error

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


def is_full(error: BaseException) -> bool:
    """Whether Redis has refused because its memory is full (`maxmemory`)."""
    if isinstance(error, OutOfMemoryError):
        return True
    return isinstance(error, ResponseError) and "OOM command not allowed" in str(error)
