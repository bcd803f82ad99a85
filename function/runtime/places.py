"""The places for requests in work, which bound the photos in memory: the most urgent first.

What waits for a place holds nothing but its bytes. While other lanes hold places, there are some
more for the interactive lane, so that it need not wait until one of the others has ended.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

from function.runtime.gate import abandoned
from function.runtime.queue import Part, Queue, Ticket
from function.turn import Lane

if TYPE_CHECKING:
    from function.turn import Turn


class Places:
    """Gives places to requests; for one event loop.

    Args:
        common: how many there are for all lanes.
        urgent: how many more for the interactive lane, at most as many as other lanes hold.

    Attributes:
        held: how many are taken.
    """

    def __init__(self, common: int, urgent: int) -> None:
        self._common, self._urgent = common, urgent
        self.held = self._others = 0
        self._queue: Queue[asyncio.Future[None]] = Queue()

    def waiting(self, lane: Lane) -> int:
        """How many requests of a lane wait for a place."""
        return self._queue.waiting(lane)

    async def acquire(self, turn: Turn) -> float:
        """Wait for a place.

        Returns:
            How long that took, in seconds.

        Raises:
            Problem: the request's deadline came first.
        """
        began = time.monotonic()
        ticket = Ticket(asyncio.get_running_loop().create_future(), turn)
        self._queue.put(ticket, began)
        self._grant()
        patience = None if math.isinf(turn.deadline) else turn.deadline - began
        try:
            async with asyncio.timeout(patience):
                await self._granted(ticket)
        except TimeoutError:
            raise abandoned() from None
        return time.monotonic() - began

    async def _granted(self, ticket: Ticket[asyncio.Future[None]]) -> None:
        """Wait; whoever is cancelled leaves the queue, or gives back what it was just given."""
        try:
            await ticket.item
        except asyncio.CancelledError:
            if ticket.item.cancelled():
                self._queue.discard(ticket)
            else:
                self.release(ticket.turn)
            raise

    def release(self, turn: Turn) -> None:
        """Give back the place of a request."""
        self._count(turn, -1)
        self._grant()

    def _count(self, turn: Turn, change: int) -> None:
        self.held += change
        self._others += change * (turn.lane is not Lane.INTERACTIVE)

    def _grant(self) -> None:
        """Give what is free to those who are next."""
        while parts := self._next():
            ticket = parts[0].ticket
            if not ticket.item.cancelled():
                self._count(ticket.turn, 1)
                ticket.item.set_result(None)

    def _next(self) -> list[Part[asyncio.Future[None]]]:
        if self.held < self._common:
            return self._queue.take(1)
        if self.held < self._common + min(self._urgent, self._others):
            return self._queue.take(1, Lane.INTERACTIVE)
        return []
