"""The book and the shelf in Redis, for replicas that share them; see book.lua."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError

from function.background.jobs.files import JobFilesError, KeptFile, NoSpaceError
from function.background.jobs.job import Job, JobState
from function.background.jobs.store import (
    HEAD_START_MS,
    EndedJob,
    JobStoreError,
    JobStoreFullError,
    OpenedJob,
    TakenJob,
)
from function.redis import Client, Decisions, Script, is_full

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from function.background.jobs.files import FileBudget
    from function.background.jobs.job import Call, JobItem, JobSpec
    from function.request_context import Lane

_SCRIPT, _ROOM = (Path(__file__).parent / name for name in ("store.lua", "files.lua"))
_PREFIX = "ember:{jobs}:"
_CONNECTIONS, _FOR_LEASES = 16, 4
_HARMLESS = {"get", "changed", "of", "renew", "mark", "finish", "over", "forget", "ahead", "counts"}
"""What changes nothing more when it is asked twice."""
_AT_ONCE = 100
_PIECE = 256 * 1024
_ENOUGH = 0.75
"""The part of Redis' memory beyond which jobs take no more."""
_PATIENCE = 8
"""How much longer than a decision a photo may take."""


class RedisJobStore:
    """See `JobStore`.

    Args:
        url: `redis://` or `rediss://` (TLS), with user, password and database if any.
        timeout_s: how long a question may take.

    Raises:
        ValueError: it is no such address.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        self._others = Decisions(url, timeout_s, _CONNECTIONS, _SCRIPT, JobStoreError)
        # However many ask about jobs, who works on one can always say so.
        self._workers = Decisions(url, timeout_s, _FOR_LEASES, _SCRIPT, JobStoreError)

    async def open(self, spec: JobSpec, limit: int, keep_s: float) -> OpenedJob:
        """See `JobStore`."""
        head_ms = HEAD_START_MS[spec.lane]
        called = int(spec.callback is not None)
        facts = (spec.text(), spec.lane, head_ms, spec.owner, limit, _ms(keep_s), called)
        memory = await self._others.memory()
        if memory.most and memory.used > memory.most * _ENOUGH:
            raise JobStoreFullError(memory=True)
        what, found = await self._ask("open", spec.key, *facts)
        if what == "full":
            raise JobStoreFullError
        return OpenedJob(_job(found), new=what == "new")

    async def get(self, key: str) -> Job | None:
        """See `JobStore`."""
        found = await self._ask("get", key)
        return _job(found) if found else None

    async def changed(self, known: Mapping[str, int]) -> dict[str, Job | None]:
        """See `JobStore`."""
        words = [word for key, version in known.items() for word in (key, version)]
        found = await self._ask("changed", "", *words)
        pairs = zip(found[::2], found[1::2], strict=True)
        return {key: _job(fields) if fields else None for key, fields in pairs}

    async def of(self, owner: str | None, start: int, count: int) -> list[Job]:
        """See `JobStore`."""
        return _jobs(await self._ask("of", "", owner or "", start, count))

    async def take(self, lanes: Sequence[Lane], lease_s: float) -> TakenJob | None:
        """See `JobStore`."""
        token = secrets.token_hex(8)
        found = await self._ask("take", "", token, _ms(lease_s), *lanes)
        return TakenJob(_job(found), token) if found else None

    async def renew(self, key: str, token: str, lease_s: float) -> bool:
        """See `JobStore`."""
        return await self._mine("renew", key, token, _ms(lease_s))

    async def mark(self, key: str, token: str, place: int, item: JobItem) -> bool:
        """See `JobStore`."""
        return await self._mine("mark", key, token, place, item.text())

    async def finish(
        self, key: str, token: str, state: JobState, items: Sequence[JobItem], keep_s: float
    ) -> bool:
        """See `JobStore`."""
        targets = [item.text() for item in items]
        return await self._mine("finish", key, token, state, _ms(keep_s), *targets)

    async def release(
        self, key: str, token: str, again_s: float | None, items: Sequence[JobItem] = ()
    ) -> bool:
        """See `JobStore`."""
        tried, targets = int(again_s is not None), [item.text() for item in items]
        return await self._mine("release", key, token, _ms(again_s or 0), tried, *targets)

    async def end(self, key: str, keep_s: float) -> EndedJob | None:
        """See `JobStore`."""
        before, found = await self._ask("end", key, _ms(keep_s))
        return EndedJob(_job(found), JobState(before)) if found else None

    async def call(self, lease_s: float) -> Job | None:
        """See `JobStore`."""
        found = await self._ask("call", "", _ms(lease_s))
        return _job(found) if found else None

    async def called(self, key: str, call: Call, note: str, again_s: float) -> None:
        """See `JobStore`."""
        await self._ask("called", key, call, note, _ms(again_s))

    async def over(self) -> list[Job]:
        """See `JobStore`."""
        return _jobs(await self._ask("over", "", _AT_ONCE))

    async def forget(self, key: str) -> None:
        """See `JobStore`."""
        await self._ask("forget", key)

    async def ahead(self, key: str) -> int | None:
        """See `JobStore`."""
        found = await self._ask("ahead", key)
        return int(found[0]) if found else None

    async def counts(self) -> dict[str, int]:
        """See `JobStore`."""
        found = await self._ask("counts", "")
        return dict(zip(("queued", "running", "due"), map(int, found), strict=True))

    async def close(self) -> None:
        """See `JobStore`."""
        await self._others.close()
        await self._workers.close()

    async def _mine(self, what: str, key: str, *more: str | int) -> bool:
        words = [what, key, *map(str, more)]
        return bool((await self._workers([_PREFIX], words, harmless=what in _HARMLESS))[0])

    async def _ask(self, what: str, key: str, *more: str | int) -> list[Any]:
        words = [what, key, *map(str, more)]
        return await self._others([_PREFIX], words, harmless=what in _HARMLESS)


class RedisJobFiles:
    """See `JobFiles`. Redis forgets photos by itself when their time is over.

    They take at most a half of the memory that Redis may have, and none when it is three quarters
    full, so that there is room for what else is written down there.

    Args:
        url: as of `RedisJobStore`.
        timeout_s: how long one question may take that is about no photo.
        budget: how many bytes, of all replicas together.

    Raises:
        ValueError: it is no such address.
    """

    def __init__(self, url: str, timeout_s: float, budget: FileBudget) -> None:
        self._redis, self._budget = Client(url, timeout_s, _CONNECTIONS), budget
        self._room = Script(self._redis, _ROOM)

    async def put(self, name: str, data: bytes, keep_s: float, holder: str = "") -> None:
        """See `JobFiles`."""
        with _told():
            memory, budget = await self._redis.memory(), self._budget
            if memory.most:
                budget = budget.within(memory.most // 2)
                if memory.used + len(data) > memory.most * _ENOUGH:
                    raise NoSpaceError
            facts = (len(data), holder, _ms(keep_s), budget.all, budget.holder)
            (answer,) = await self._room([_PREFIX], ["keep", name, *facts], harmless=True)
        if answer != b"ok":
            raise NoSpaceError(own=answer == b"own")
        try:
            with _told():
                await self._write(_place(name), data, _ms(keep_s))
        except BaseException:
            with contextlib.suppress(JobFilesError, NoSpaceError):
                await asyncio.shield(self.drop([name]))
            raise

    async def _write(self, place: str, data: bytes, keep_ms: int) -> None:
        """Write a photo in pieces, so that Redis never holds many of them half read."""
        first = data[:_PIECE]
        if len(data) <= _PIECE:
            await self._ask("SET", place, first, "PX", keep_ms)
            return
        new = f"{{{place}}}:new"  # in the same slot of a cluster
        await self._ask("SET", new, first, "PX", keep_ms)
        for begin in range(_PIECE, len(data), _PIECE):
            await self._ask("SETRANGE", new, begin, data[begin : begin + _PIECE])
        await self._ask("RENAME", new, place, harmless=False)

    async def get(self, name: str) -> KeptFile | None:
        """See `JobFiles`."""
        with _told():
            size = await self._ask("STRLEN", _place(name))
        return KeptFile(size, self._pieces(name, size)) if size else None

    async def drop(self, names: Sequence[str]) -> None:
        """See `JobFiles`."""
        with _told():
            await self._ask("UNLINK", *map(_place, names))
            await self._room([_PREFIX], ["forget", *names], harmless=True)

    async def close(self) -> None:
        """See `JobFiles`."""
        await self._redis.close()

    async def _pieces(self, name: str, size: int) -> AsyncIterator[bytes]:
        for begin in range(0, size, _PIECE):
            with _told():
                piece = await self._ask("GETRANGE", _place(name), begin, begin + _PIECE - 1)
            if not isinstance(piece, bytes) or not piece:
                raise JobFilesError("it was deleted meanwhile")
            yield piece

    async def _ask(self, *words: str | bytes | int, harmless: bool = True) -> Any:
        return await self._redis.ask(*words, patience=_PATIENCE, harmless=harmless)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Say what is wrong with Redis in the words of a shelf."""
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        if is_full(error):
            raise NoSpaceError from error
        raise JobFilesError(type(error).__name__) from error


def _job(found: list[str]) -> Job:
    return Job.of(dict(zip(found[::2], found[1::2], strict=True)))


def _jobs(found: list[list[str]]) -> list[Job]:
    return [_job(each) for each in found if each]


def _place(name: str) -> str:
    return f"ember:jobs:photo:{name}"


def _ms(seconds: float) -> int:
    return int(seconds * 1e3)
