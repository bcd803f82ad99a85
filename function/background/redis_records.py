"""Records in Redis, for replicas that share them; `records.lua` decides."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from function.background.records import Fields, Namespace, StoreError, milliseconds
from function.redis.client import Client, failures
from function.redis.script import Script

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from function.request_context import Lane

_SCRIPT = Path(__file__).parent / "records.lua"
_CONNECTIONS, _CONNECTIONS_FOR_HOLDERS = 16, 4
_BY_HOLDERS = {"renew", "accept", "release", "settle", "mark", "finish"}
_IDEMPOTENT = _BY_HOLDERS | {"get", "changed", "of", "over", "forget", "ahead", "counts"}
"""What changes nothing more when it is asked twice."""
_AT_ONCE = 100

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

    async def get(self, name: str) -> Fields:
        return _fields(await self._run("get", name))

    async def take(
        self, token: str, lease_s: float, state: str, lanes: Sequence[Lane] = ()
    ) -> tuple[str, Fields] | None:
        found = await self._run("take", "", token, milliseconds(lease_s), state, *lanes)
        return (found[0], _fields(found[1])) if found else None

    async def renew(self, name: str, token: str, lease_s: float) -> bool:
        return bool((await self._run("renew", name, token, milliseconds(lease_s)))[0])

    async def release(
        self,
        name: str,
        token: str,
        again_s: float = 0.0,
        fields: Fields | None = None,
        *,
        tried: bool = True,
    ) -> bool:
        facts = milliseconds(again_s), int(tried) - 1
        return bool((await self._run("release", name, token, *facts, *_words(fields or {})))[0])

    async def claim(
        self, name: str, alias: str, token: str, event: str, *, lease_s: float, keep_s: float
    ) -> tuple[Fields, float]:
        facts = milliseconds(lease_s), milliseconds(keep_s), alias, event
        left_ms, found = await self._run("claim", name, token, *facts)
        return _fields(found), int(left_ms) / 1e3

    async def accept(self, name: str, token: str) -> bool:
        return bool((await self._run("accept", name, token))[0])

    async def settle(self, name: str, alias: str, fields: Fields, keep_s: float) -> None:
        await self._run("settle", name, "", milliseconds(keep_s), alias, *_words(fields))

    async def open(
        self, name: str, lane: Lane, head_start_s: float, owner: str, fields: Fields,
        *, limit: int, keep_s: float,
    ) -> tuple[str, Fields]:  # fmt: skip
        facts = lane, milliseconds(head_start_s), owner, limit, milliseconds(keep_s)
        answer, found = await self._run("open", name, "", *facts, *_words(fields))
        return answer, _fields(found)

    async def mark(self, name: str, token: str, fields: Fields) -> bool:
        return bool((await self._run("mark", name, token, *_words(fields)))[0])

    async def finish(
        self, name: str, token: str, state: str, fields: Fields, keep_s: float
    ) -> bool:
        facts = milliseconds(keep_s), state
        return bool((await self._run("finish", name, token, *facts, *_words(fields)))[0])

    async def end(self, name: str, keep_s: float) -> tuple[str, Fields]:
        before, found = await self._run("end", name, "", milliseconds(keep_s))
        return before, _fields(found)

    async def call(self, lease_s: float) -> Fields:
        return _fields(await self._run("call", "", "", milliseconds(lease_s)))

    async def called(self, name: str, fields: Fields, again_s: float | None) -> None:
        again = "" if again_s is None else milliseconds(again_s)
        await self._run("called", name, "", again, *_words(fields))

    async def changed(self, known: Mapping[str, int]) -> dict[str, Fields]:
        words = [word for name, version in known.items() for word in (name, version)]
        found = await self._run("changed", "", "", *words)
        return {name: _fields(each) for name, each in zip(found[::2], found[1::2], strict=True)}

    async def of(self, owner: str | None, start: int, count: int) -> list[Fields]:
        found = await self._run("of", "", "", owner or "", start, count)
        return [_fields(each) for each in found if each]

    async def over(self) -> list[Fields]:
        return [_fields(each) for each in await self._run("over", "", "", _AT_ONCE) if each]

    async def forget(self, name: str) -> None:
        await self._run("forget", name)

    async def ahead(self, name: str) -> int | None:
        found = await self._run("ahead", name)
        return int(found[0]) if found else None

    async def counts(self) -> tuple[int, int, int]:
        queued, leased, due = map(int, await self._run("counts", ""))
        return queued, leased, due

    async def nearly_full(self) -> bool:
        with failures(StoreError):
            memory = await self._client.memory()
        return memory.limit is not None and memory.used > memory.limit * NEARLY_FULL

    async def close(self) -> None:
        await self._client.close()
        await self._holders.close()

    async def _run(self, what: str, name: str, token: str = "", *facts: str | int) -> list[Any]:
        script = self._for_holders if what in _BY_HOLDERS else self._for_all
        at = self._namespace
        words = [at.records, at.leases, what, name, token, *map(str, facts)]
        with failures(StoreError):
            return await script([at.prefix], words, idempotent=what in _IDEMPOTENT)


def _fields(found: list[str]) -> Fields:
    return dict(zip(found[::2], found[1::2], strict=True))


def _words(fields: Fields) -> list[str]:
    return [word for pair in fields.items() for word in pair]
