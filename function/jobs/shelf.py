"""The shelf: where the photos of jobs are, what came with them and what came out.

What every shelf can do, the one in memory, and the one in a bucket or a folder.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from function.storage.storage import Storage


@dataclass(frozen=True, slots=True)
class Kept:
    """A photo on a shelf: how many bytes it has, and they, piece by piece, once."""

    size: int
    pieces: AsyncIterator[bytes]

    async def whole(self) -> bytes:
        """All of it."""
        return b"".join([piece async for piece in self.pieces])


class Shelf(Protocol):
    """Keeps photos by names that nobody can guess. Every call may raise `ShelfError`."""

    async def put(self, name: str, data: bytes, keep_s: float) -> None:
        """Keep a photo for so long at least, in place of what has the name.

        Raises:
            NoSpaceError: there is no room for it.
        """
        ...

    async def get(self, name: str) -> Kept | None:
        """A photo; None when there is none."""
        ...

    async def drop(self, names: Sequence[str]) -> None:
        """Delete photos; those that are not there are passed over."""
        ...

    async def close(self) -> None:
        """Close what it holds open."""
        ...


class ShelfError(Exception):
    """The shelf cannot be reached."""


class NoSpaceError(Exception):
    """There is no room for a photo."""


class Memory:
    """Keeps photos in this process: for one replica, and gone with it.

    Args:
        limit: the most bytes of all of them.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self.held = limit, 0
        self._photos: dict[str, bytes] = {}

    async def put(self, name: str, data: bytes, keep_s: float) -> None:  # noqa: ARG002
        """See `Shelf`."""
        before = len(self._photos.get(name, b""))
        if self.held - before + len(data) > self._limit:
            raise NoSpaceError
        self.held += len(data) - before
        self._photos[name] = data

    async def get(self, name: str) -> Kept | None:
        """See `Shelf`."""
        data = self._photos.get(name)
        return None if data is None else Kept(len(data), _once(data))

    async def drop(self, names: Sequence[str]) -> None:
        """See `Shelf`."""
        for name in names:
            self.held -= len(self._photos.pop(name, b""))

    async def close(self) -> None:
        """See `Shelf`."""


class Placed:
    """Keeps photos below a URI.

    Args:
        storage: knows the place.
        base: of a bucket, perhaps with the beginning of names, or of a folder; ends with `/`.
        limit: the most bytes of one photo.
    """

    def __init__(self, storage: Storage, base: str, limit: int) -> None:
        self._storage, self._base, self._limit = storage, base, limit

    async def put(self, name: str, data: bytes, keep_s: float) -> None:  # noqa: ARG002
        """See `Shelf`."""
        try:
            kind = "application/octet-stream"
            await self._storage.write(self._base + name, data, media_type=kind)
        except Problem as problem:
            raise ShelfError(problem.detail) from problem

    async def get(self, name: str) -> Kept | None:
        """See `Shelf`."""
        try:
            found = await self._storage.read(self._base + name, self._limit)
        except Problem as problem:
            if problem.code == "object_not_found":
                return None
            raise ShelfError(problem.detail) from problem
        return Kept(len(found.data), _once(found.data))

    async def drop(self, names: Sequence[str]) -> None:
        """See `Shelf`."""
        try:
            await asyncio.gather(*(self._storage.delete(self._base + name) for name in names))
        except Problem as problem:
            raise ShelfError(problem.detail) from problem

    async def close(self) -> None:
        """See `Shelf`."""
        await self._storage.close()


_PIECE = 256 * 1024


async def _once(data: bytes) -> AsyncIterator[bytes]:
    view = memoryview(data)
    for begin in range(0, len(data), _PIECE):
        yield bytes(view[begin : begin + _PIECE])
