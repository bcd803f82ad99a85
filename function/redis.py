"""Connections to the Redis that replicas share."""

from __future__ import annotations

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


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
