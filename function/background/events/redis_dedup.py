"""The ledger in Redis, for replicas that share it; see ledger.lua."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from function.background.events.dedup import (
    KEEP_S,
    Claim,
    DedupStoreError,
    EventKeys,
    EventRemainder,
    EventState,
)
from function.redis import Decisions

_SCRIPT = Path(__file__).parent / "dedup.lua"
_PREFIX = "ember:{events}:"
_UPLOAD, _EVENT, _ACCEPTED = f"{_PREFIX}upload:", f"{_PREFIX}event:", f"{_PREFIX}accepted"
_CONNECTIONS, _FOR_LEASES = 16, 4
_HARMLESS = {"renew", "accept", "finish", "release"}
"""What changes nothing more when it is asked twice."""


class RedisDedupStore:
    """See `DedupStore`.

    Args:
        url: `redis://` or `rediss://` (TLS), with user, password and database if any.
        timeout_s: how long a question may take.

    Raises:
        ValueError: it is no such address.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        self._ask = Decisions(url, timeout_s, _CONNECTIONS, _SCRIPT, DedupStoreError)
        # However many events come, who works on one can always say so.
        self._keep = Decisions(url, timeout_s, _FOR_LEASES, _SCRIPT, DedupStoreError)

    async def claim(self, keys: EventKeys, event: str, lease_s: float) -> Claim:
        """See `DedupStore`."""
        token = secrets.token_hex(8)
        state, result, left_ms = await self._run("claim", keys, token, lease_s, event)
        return Claim(EventState(state), token, result, int(left_ms) / 1e3)

    async def renew(self, keys: EventKeys, token: str, lease_s: float) -> bool:
        """See `DedupStore`."""
        return bool((await self._run("renew", keys, token, lease_s))[0])

    async def accept(self, keys: EventKeys, token: str) -> bool:
        """See `DedupStore`."""
        return bool((await self._run("accept", keys, token))[0])

    async def finish(
        self, keys: EventKeys, token: str, result: str, keep_s: float = KEEP_S
    ) -> None:
        """See `DedupStore`."""
        await self._run("finish", keys, token, 0, result, keep_s=keep_s)

    async def release(self, keys: EventKeys, token: str) -> None:
        """See `DedupStore`."""
        await self._run("release", keys, token)

    async def left(self, lease_s: float) -> EventRemainder | None:
        """See `DedupStore`."""
        token = secrets.token_hex(8)
        arguments = ["left", token, _ms(lease_s), _ms(KEEP_S)]
        found = await self._ask([_ACCEPTED, _ACCEPTED, _ACCEPTED], arguments)
        if not found:
            return None
        upload, event, alias = found
        return EventRemainder(
            EventKeys(upload.removeprefix(_UPLOAD), alias.removeprefix(_EVENT)), token, event
        )

    async def close(self) -> None:
        """See `DedupStore`."""
        await self._ask.close()
        await self._keep.close()

    async def _run(
        self,
        what: str,
        keys: EventKeys,
        token: str,
        lease_s: float = 0,
        *more: str,
        keep_s: float = KEEP_S,
    ) -> list[Any]:
        places = [_UPLOAD + keys.upload, _EVENT + keys.event, _ACCEPTED]
        arguments = [what, token, _ms(lease_s), _ms(keep_s), *more]
        ask = self._ask if what == "claim" else self._keep
        return await ask(places, arguments, harmless=what in _HARMLESS)


def _ms(seconds: float) -> str:
    return str(int(seconds * 1e3))
