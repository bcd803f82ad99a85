"""The bytes of all bodies of requests that are being received or wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.problems import RetryLaterError
from function.request_context import Lane

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self


class OverBudgetError(RetryLaterError):
    """`overloaded`: the bodies at hand leave no room for another."""


class ByteBudget:
    """So many bytes for all bodies together.

    Bulk work may take only half of them, so that it never keeps the other lanes out.

    Args:
        size: how many bytes there are for all.
        one: how many a single body may have; it fits into an empty budget in any lane.
        wait_s: after how many seconds a lane may try again when there is no room.
    """

    def __init__(
        self, size: int, one: int, wait_s: Callable[[Lane], float] = lambda _: 0.0
    ) -> None:
        self.size, self._wait_s = max(size, one), wait_s
        self._for_bulk = max(size // 2, one)
        self._held = self._held_by_bulk = 0

    def body(self, lane: Lane) -> BodyBytes:
        """The bytes of one more body, of which there are none yet."""
        return BodyBytes(self, lane)

    def take(self, size: int, lane: Lane) -> None:
        """Take so many bytes; a negative number gives them back.

        Raises:
            OverBudgetError: there is no room for them; nothing was taken.
        """
        bulk = lane is Lane.BULK
        crowded = bulk and self._held_by_bulk + size > self._for_bulk
        if size > 0 and (crowded or self._held + size > self.size):
            raise OverBudgetError(
                "overloaded",
                "The bodies of the requests at hand leave no room for another.",
                self._wait_s(lane),
                limit=self.size,
                setting="EMBER_MAX_BODIES_BYTES",
            )
        self._held += size
        self._held_by_bulk += size * bulk


class BodyBytes:
    """What one body takes of a budget; at the end of `with` all of it is given back."""

    __slots__ = ("_budget", "_lane", "_taken")

    def __init__(self, budget: ByteBudget, lane: Lane) -> None:
        self._budget, self._lane, self._taken = budget, lane, 0

    def take(self, size: int) -> None:
        """Take so many more bytes.

        Raises:
            OverBudgetError: there is no room for them.
        """
        self._budget.take(size, self._lane)
        self._taken += size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._budget.take(-self._taken, self._lane)
        self._taken = 0
