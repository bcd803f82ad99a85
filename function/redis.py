"""Connections to the Redis that replicas share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

if TYPE_CHECKING:
    from pathlib import Path


def connect(url: str, timeout_s: float, connections: int, *, text: bool = False) -> Redis:
    """A client; it connects when it is first asked.

    Args:
        url: `redis://` or `rediss://` (TLS), with user, password and database if any.
        timeout_s: how long a connection may take to open, or to become free.
        connections: the most at once.
        text: whether answers are str, not bytes.

    Raises:
        ValueError: it is no such address.
    """
    # A connection that breaks is no reason to try again: what was asked may have been done.
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=connections,
        timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 0),
        decode_responses=text,
    )
    return Redis.from_pool(pool)


class Script:
    """A Lua script whose answers are lists of text; each call of it is one decision, atomic.

    Args:
        url: as of `connect`.
        timeout_s: how long a question may take.
        connections: the most at once.
        path: the script.
        silent: what is raised when there is no answer in time; the reason is its text.

    Raises:
        ValueError: the address is none.
    """

    def __init__(
        self, url: str, timeout_s: float, connections: int, path: Path, silent: type[Exception]
    ) -> None:
        self._timeout_s, self._silent = timeout_s, silent
        self.redis = connect(url, timeout_s, connections, text=True)
        self._script = self.redis.register_script(path.read_text("utf-8"))

    async def __call__(self, keys: list[str], arguments: list[Any]) -> list[Any]:
        """The answer."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return list(await self._script(keys, arguments))
        except (RedisError, OSError, TimeoutError) as error:
            raise self._silent(type(error).__name__) from error

    async def close(self) -> None:
        """Close all connections."""
        await self.redis.aclose()
