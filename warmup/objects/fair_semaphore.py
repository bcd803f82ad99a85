"""Places that many want, of which nobody gets more than a share."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(slots=True)
class _Share:
    places: asyncio.Semaphore
    users: int = 0


class FairSemaphore:
    """So many places for all, and so many of them for each name; who comes first is served first.

    Whoever waits for its own share takes no place that others could have.

    Args:
        every: how many there are.
        each: how many of them one name gets at once.
    """

    def __init__(self, every: int, each: int) -> None:
        self._every, self._each = asyncio.Semaphore(every), each
        self._shares: dict[str, _Share] = {}

    @asynccontextmanager
    async def place(self, name: str) -> AsyncIterator[None]:
        """Wait for a place, and hold it while the body runs."""
        share = self._shares.setdefault(name, _Share(asyncio.Semaphore(self._each)))
        share.users += 1
        try:
            async with share.places, self._every:
                yield
        finally:
            share.users -= 1
            if not share.users:
                del self._shares[name]
