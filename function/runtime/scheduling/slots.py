"""The places for requests in work, which bound the photos in memory: the most urgent first.

What waits for a place holds nothing but its bytes. While other lanes hold places, there are some
more for the interactive lane, so that it need not wait until one of the others has ended; and a
lane that is behind its share gets places first, as many as its share of all, so that it always has
somebody in work to whom what it earns can be given.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from typing import TYPE_CHECKING

from function.request_context import SHARES, Lane
from function.runtime.scheduling.permits import abandoned
from function.runtime.scheduling.queue import Queue, Ticket

if TYPE_CHECKING:
    from function.request_context import RequestContext
    from function.runtime.scheduling.lane_shares import LaneShares


class RequestSlots:
    """Gives places to requests; for one event loop.

    Args:
        common: how many there are for all lanes.
        extra: how many more for the interactive lane, at most as many as other lanes hold, and
            for lanes that are behind their shares.
        shares: what lanes have coming; None if nothing but these places is shared.

    """

    def __init__(self, common: int, extra: int, shares: LaneShares | None = None) -> None:
        self._common, self._extra = common, extra
        self._floors = {lane: math.ceil(common * share / 100) for lane, share in SHARES.items()}
        self._held: Counter[Lane] = Counter()
        self._queue: Queue[asyncio.Future[None]] = Queue(shares)

    @property
    def held(self) -> int:
        """How many are taken."""
        return self._held.total()

    def waiting(self, lane: Lane) -> int:
        """How many requests of a lane wait for a place."""
        return self._queue.waiting(lane)

    async def acquire(self, context: RequestContext) -> float:
        """Wait for a place.

        Returns:
            How long that took, in seconds.

        Raises:
            Problem: the request's deadline came first.
        """
        began = time.monotonic()
        ticket = Ticket(asyncio.get_running_loop().create_future(), context)
        self._queue.put(ticket, began)
        self._grant()
        patience = None if math.isinf(context.deadline) else context.deadline - began
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
                self.release(ticket.context)
            raise

    def release(self, context: RequestContext) -> None:
        """Give back the place of a request."""
        self._held[context.lane] -= 1
        self._grant()

    def _grant(self) -> None:
        """Give what is free to those who are next."""
        while (lane := self._next()) and (parts := self._queue.take(1, lane)):
            ticket = parts[0].ticket
            if not ticket.item.cancelled():
                self._held[lane] += 1
                ticket.item.set_result(None)

    def _next(self) -> Lane | None:
        """Whose lane gets the next place; None while nobody does."""
        held, most = self.held, self._common + self._extra
        for lane, floor in self._floors.items():
            behind = self._queue.waiting(lane) and self._queue.shares.owed(lane)
            if behind and self._held[lane] < floor and held < most:
                return lane
        others = held - self._held[Lane.INTERACTIVE]
        urgent = self._queue.waiting(Lane.INTERACTIVE)
        if urgent and held < self._common + min(self._extra, others):
            return Lane.INTERACTIVE
        return self._queue.most_urgent() if held < self._common else None
