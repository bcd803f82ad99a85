"""The files of jobs, what came with them and what came out: in memory, or below a URI."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from function.background.records import RecordStoreError
from function.problems import ObjectNotFoundError, Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from function.storage.storage import Storage


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file: its size in bytes, and its content, piece by piece, which can be read once."""

    size: int
    pieces: AsyncIterator[bytes]

    async def whole(self) -> bytes:
        """All of it."""
        return b"".join([piece async for piece in self.pieces])


class JobFiles(Protocol):
    """Keeps files by names that nobody can guess. Every call may raise `JobFilesError`."""

    async def put(self, name: str, data: bytes, keep_s: float, holder: str = "") -> None:
        """Keep a file for so long at least, in place of what has the name.

        Args:
            name: its name.
            data: its bytes.
            keep_s: how long.
            holder: who has only so much room; "" for nobody.

        Raises:
            NoSpaceError: there is no room for it.
        """
        ...

    async def get(self, name: str) -> KeptFile | None:
        """A file; None when there is none."""
        ...

    async def drop(self, names: Sequence[str]) -> None:
        """Delete files; those that are not there are passed over."""
        ...

    async def close(self) -> None:
        """Close what it holds open."""
        ...


class JobFilesError(RecordStoreError):
    """The files cannot be reached."""


class NoSpaceError(Exception):
    """There is no room for a file: its holder has none, if it is `own`, or nobody has."""

    def __init__(self, *, own: bool = False) -> None:
        super().__init__()
        self.own = own


@dataclass(frozen=True, slots=True)
class FileBudget:
    """How many bytes of files may be kept: `all`, and of `each` holder; None for a half."""

    all: int
    each: int | None = None

    def within(self, most: int) -> FileBudget:
        """The same, and no more than so much in all; of that, each has a half at most."""
        return FileBudget(min(self.all, most), min(self.holder, most // 2))

    @property
    def holder(self) -> int:
        """What each holder may have."""
        return self.all // 2 if self.each is None else self.each


class InMemoryJobFiles:
    """Keeps files in this process: for one replica, and gone with it.

    Args:
        budget: how many bytes.
    """

    def __init__(self, budget: FileBudget) -> None:
        self._budget = budget
        self._files: dict[str, bytes] = {}
        self._held: Counter[str] = Counter()
        self._holders: dict[str, str] = {}

    @property
    def held(self) -> int:
        """How many bytes are kept."""
        return self._held.total()

    async def put(self, name: str, data: bytes, keep_s: float, holder: str = "") -> None:  # noqa: ARG002
        before, size = len(self._files.get(name, b"")), len(data)
        mine = before if self._holders.get(name) == holder else 0
        if self.held - before + size > self._budget.all:
            raise NoSpaceError
        if holder and self._held[holder] - mine + size > self._budget.holder:
            raise NoSpaceError(own=True)
        await self.drop([name])
        self._files[name], self._holders[name] = data, holder
        self._held[holder] += size

    async def get(self, name: str) -> KeptFile | None:
        data = self._files.get(name)
        return None if data is None else KeptFile(len(data), _once(data))

    async def drop(self, names: Sequence[str]) -> None:
        for name in names:
            if (data := self._files.pop(name, None)) is not None:
                self._held[holder := self._holders.pop(name)] -= len(data)
                if not self._held[holder]:
                    del self._held[holder]

    async def close(self) -> None:
        pass


class ObjectJobFiles:
    """Keeps files below a URI, as many as the bucket or the disk takes.

    Args:
        storage: reads and writes there.
        base: of a bucket, perhaps with the beginning of names, or of a folder; ends with `/`.
        limit: the most bytes of one file.
    """

    def __init__(self, storage: Storage, base: str, limit: int) -> None:
        self._storage, self._base, self._limit = storage, base, limit

    async def put(self, name: str, data: bytes, keep_s: float, holder: str = "") -> None:  # noqa: ARG002
        try:
            kind = "application/octet-stream"
            await self._storage.write(self._base + name, data, media_type=kind)
        except Problem as problem:
            raise JobFilesError(problem.detail) from problem

    async def get(self, name: str) -> KeptFile | None:
        try:
            found = await self._storage.read(self._base + name, self._limit)
        except ObjectNotFoundError:
            return None
        except Problem as problem:
            raise JobFilesError(problem.detail) from problem
        return KeptFile(len(found.data), _once(found.data))

    async def drop(self, names: Sequence[str]) -> None:
        try:
            await asyncio.gather(*(self._storage.delete(self._base + name) for name in names))
        except Problem as problem:
            raise JobFilesError(problem.detail) from problem

    async def close(self) -> None:
        await self._storage.close()


_PIECE = 256 * 1024


async def _once(data: bytes) -> AsyncIterator[bytes]:
    view = memoryview(data)
    for begin in range(0, len(data), _PIECE):
        yield bytes(view[begin : begin + _PIECE])
