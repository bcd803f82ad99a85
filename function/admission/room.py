"""Room for the bodies of requests: the bytes of all that are being received or wait."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from function.turn import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class NoRoomError(Exception):
    """The bodies at hand leave no room for another."""


class Room:
    """Room for so many bytes.

    Bulk work may take only half of it, so that it never keeps the other lanes out.

    Args:
        size: how many bytes there are for all.
        one: how many a single body may have; it fits into an empty room in any lane.
    """

    def __init__(self, size: int, one: int) -> None:
        self.size = max(size, one)
        self._for_bulk = max(size // 2, one)
        self._held = self._held_by_bulk = 0

    @contextmanager
    def body(self, lane: Lane) -> Iterator[Callable[[int], None]]:
        """Give a function that takes so many more bytes for one request's body.

        All are given back at the end. What is given raises `NoRoomError`.
        """
        taken = 0
        bulk = lane is Lane.BULK

        def take(size: int) -> None:
            nonlocal taken
            crowded = bulk and self._held_by_bulk + size > self._for_bulk
            if crowded or self._held + size > self.size:
                raise NoRoomError
            self._held += size
            self._held_by_bulk += size * bulk
            taken += size

        try:
            yield take
        finally:
            self._held -= taken
            self._held_by_bulk -= taken * bulk
