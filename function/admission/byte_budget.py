"""Room for the bodies of requests: the bytes of all that are being received or wait."""

from __future__ import annotations

from function.request_context import Lane


class OverBudgetError(Exception):
    """The bodies at hand leave no room for another."""


class ByteBudget:
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

    def body(self, lane: Lane) -> BodyBytes:
        """Room for one more body, of which nothing is taken yet."""
        return BodyBytes(self, bulk=lane is Lane.BULK)

    def take(self, size: int, *, bulk: bool) -> None:
        """Take so many bytes; a negative number gives them back.

        Raises:
            NoRoomError: there is no room for them; nothing was taken.
        """
        crowded = bulk and self._held_by_bulk + size > self._for_bulk
        if size > 0 and (crowded or self._held + size > self.size):
            raise OverBudgetError
        self._held += size
        self._held_by_bulk += size * bulk


class BodyBytes:
    """What one body takes of a room."""

    __slots__ = ("_bulk", "_room", "_taken")

    def __init__(self, room: ByteBudget, *, bulk: bool) -> None:
        self._room, self._bulk, self._taken = room, bulk, 0

    def take(self, size: int) -> None:
        """Take so many more bytes.

        Raises:
            NoRoomError: there is no room for them.
        """
        self._room.take(size, bulk=self._bulk)
        self._taken += size

    def release(self) -> None:
        """Give all of them back."""
        self._room.take(-self._taken, bulk=self._bulk)
        self._taken = 0
