"""The files of jobs in Redis, for replicas that share them; `files.lua` counts their bytes."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from function.background.jobs.files import JobFilesError, KeptFile, NoSpaceError
from function.background.records import milliseconds
from function.background.redis_records import NEARLY_FULL
from function.redis.client import Client, failures
from function.redis.script import Script

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from function.background.jobs.files import FileBudget

_SCRIPT = Path(__file__).parent / "files.lua"
_PREFIX = "ember:{jobs}:"
_CONNECTIONS = 16
_PIECE = 256 * 1024
_TIMEOUT_FACTOR = 8
"""How much longer than a decision a photo may take."""


class RedisJobFiles:
    """Keeps files in Redis, which forgets them by itself when their time is over.

    They take at most a half of the memory that Redis may have, and none when it is three quarters
    full, so that there is room for what else is written down there.

    Args:
        url: `redis://` or `rediss://` (TLS), with user, password and database if any.
        timeout_s: how long one question may take that is about no photo.
        budget: how many bytes, of all replicas together.

    Raises:
        ValueError: it is no such address.
    """

    def __init__(self, url: str, timeout_s: float, budget: FileBudget) -> None:
        self._redis, self._budget = Client(url, timeout_s, _CONNECTIONS), budget
        self._bytes = Script(self._redis, _SCRIPT)

    async def put(self, name: str, data: bytes, keep_s: float, holder: str = "") -> None:
        with _failures():
            memory, budget = await self._redis.memory(), self._budget
            if memory.limit:
                budget = budget.within(memory.limit // 2)
                if memory.used + len(data) > memory.limit * NEARLY_FULL:
                    raise NoSpaceError
            facts = (len(data), holder, milliseconds(keep_s), budget.all, budget.holder)
            (answer,) = await self._bytes([_PREFIX], ["keep", name, *facts], idempotent=True)
        if answer != b"ok":
            raise NoSpaceError(own=answer == b"own")
        try:
            with _failures():
                await self._write(_place(name), data, milliseconds(keep_s))
        except BaseException:
            with contextlib.suppress(JobFilesError, NoSpaceError):
                await asyncio.shield(self.drop([name]))
            raise

    async def _write(self, place: str, data: bytes, keep_ms: int) -> None:
        """Write a photo in pieces, so that Redis never holds many of them half read."""
        first = data[:_PIECE]
        if len(data) <= _PIECE:
            await self._execute("SET", place, first, "PX", keep_ms)
            return
        new = f"{{{place}}}:new"  # in the same slot of a cluster
        await self._execute("SET", new, first, "PX", keep_ms)
        for begin in range(_PIECE, len(data), _PIECE):
            await self._execute("SETRANGE", new, begin, data[begin : begin + _PIECE])
        await self._execute("RENAME", new, place, idempotent=False)

    async def get(self, name: str) -> KeptFile | None:
        with _failures():
            size = await self._execute("STRLEN", _place(name))
        return KeptFile(size, self._pieces(name, size)) if size else None

    async def drop(self, names: Sequence[str]) -> None:
        with _failures():
            await self._execute("UNLINK", *map(_place, names))
            await self._bytes([_PREFIX], ["forget", *names], idempotent=True)

    async def close(self) -> None:
        await self._redis.close()

    async def _pieces(self, name: str, size: int) -> AsyncIterator[bytes]:
        for begin in range(0, size, _PIECE):
            with _failures():
                piece = await self._execute("GETRANGE", _place(name), begin, begin + _PIECE - 1)
            if not isinstance(piece, bytes) or not piece:
                raise JobFilesError("it was deleted meanwhile")
            yield piece

    async def _execute(self, *words: str | bytes | int, idempotent: bool = True) -> Any:
        return await self._redis.execute(
            *words, timeout_factor=_TIMEOUT_FACTOR, idempotent=idempotent
        )


def _failures() -> contextlib.AbstractContextManager[None]:
    return failures(JobFilesError, NoSpaceError)


def _place(name: str) -> str:
    return f"ember:jobs:photo:{name}"
