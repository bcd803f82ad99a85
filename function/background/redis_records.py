"""Records in Redis, for replicas that share them; `records.lua` decides."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from function.background.records import BY_HOLDERS, RecordStoreError
from function.redis.client import Client, failures
from function.redis.script import Script

if TYPE_CHECKING:
    from function.background.records import Namespace

_SCRIPT = Path(__file__).parent / "records.lua"
_CONNECTIONS, _CONNECTIONS_FOR_HOLDERS = 16, 4
_FOR_HOLDERS = BY_HOLDERS | {"settle"}
_IDEMPOTENT = _FOR_HOLDERS | {"get", "changed", "of", "over", "forget", "ahead", "counts"}
"""What changes nothing more when it is asked twice."""

NEARLY_FULL = 0.75
"""The part of Redis' memory beyond which jobs take no more."""


class RedisRecords:
    """Keeps records in Redis.

    Args:
        url: `redis://` or `rediss://` (TLS), with user, password and database if any.
        timeout_s: how long a question may take.
        namespace: where the records are.

    Raises:
        ValueError: it is no such address.
    """

    lasting = True

    def __init__(self, url: str, timeout_s: float, namespace: Namespace) -> None:
        self._namespace = namespace
        self._client = Client(url, timeout_s, _CONNECTIONS, text=True)
        # However many ask, who holds a lease can always say so.
        self._holders = Client(url, timeout_s, _CONNECTIONS_FOR_HOLDERS, text=True)
        self._for_all, self._for_holders = (
            Script(each, _SCRIPT) for each in (self._client, self._holders)
        )

    async def decide(
        self, what: str, name: str = "", token: str = "", *facts: str | int
    ) -> list[Any]:
        """What `records.lua` answers."""
        script = self._for_holders if what in _FOR_HOLDERS else self._for_all
        at = self._namespace
        arguments = [at.records, at.leases, what, name, token, *map(str, facts)]
        with failures(RecordStoreError):
            return await script([at.prefix], arguments, idempotent=what in _IDEMPOTENT)

    async def nearly_full(self) -> bool:
        """Whether three quarters of the memory of Redis are used."""
        with failures(RecordStoreError):
            memory = await self._client.memory()
        return memory.limit is not None and memory.used > memory.limit * NEARLY_FULL

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()
        await self._holders.close()
