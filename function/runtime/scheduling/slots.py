"""The slots for requests in work, which bound the photos in memory: the most urgent first.

What waits for a slot holds nothing but its bytes. While other lanes hold slots, there are some more
for the interactive lane, so that it need not wait until one of the others has ended; and a lane
that is behind its share gets slots first, as many as its share of all, so that it always has
somebody in work to whom what it earns can be given.

An example: 4 slots and 2 extra ones. Three bulk requests and one standard request hold the four. An
interactive one has an extra slot at once, another the second one, a third has to wait. When a bulk
request ends, five are held, which is no less than 4, so that only an interactive one can be next.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from typing import TYPE_CHECKING

from function.problems import DeadlinePassedError
from function.request_context import SHARES, Lane
from function.runtime.scheduling.queue import Queue, Ticket

if TYPE_CHECKING:
    from typing import Self

    from function.request_context import RequestContext
    from function.runtime.scheduling.lane_shares import LaneShares


class RequestSlot:
    """One slot, which its request holds until the end of `with`.

    Attributes:
        lane: of its request.
        granted: is done when the request may begin.
        waited_s: how long that took, in seconds.
    """

    __slots__ = ("_slots", "granted", "lane", "waited_s")

    def __init__(self, slots: RequestSlots, lane: Lane) -> None:
        self._slots, self.lane = slots, lane
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waited_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._slots.give_back(self)


class RequestSlots:
    """Gives slots to requests; for one event loop.

    Args:
        common: how many there are for all lanes.
        extra: how many more for the interactive lane, at most as many as other lanes hold, and
            for lanes that are behind their shares.
        shares: what lanes have coming; None if nothing but these slots is shared.
    """

    def __init__(self, common: int, extra: int, shares: LaneShares | None = None) -> None:
        self._common, self._extra = common, extra
        self._floors = {lane: math.ceil(common * share / 100) for lane, share in SHARES.items()}
        self._held: Counter[Lane] = Counter()
        self._queue: Queue[RequestSlot] = Queue(shares)

    @property
    def held(self) -> int:
        """How many are taken."""
        return self._held.total()

    def waiting(self, lane: Lane) -> int:
        """How many requests of a lane wait for a slot."""
        return self._queue.waiting(lane)

    async def acquire(self, context: RequestContext) -> RequestSlot:
        """Wait for a slot; whoever is cancelled meanwhile has none.

        Raises:
            DeadlinePassedError: the request's deadline came first.
        """
        began = time.monotonic()
        slot = RequestSlot(self, context.lane)
        ticket = Ticket(slot, context)
        self._queue.put(ticket, began)
        self._grant()
        patience = None if math.isinf(context.deadline) else context.deadline - began
        try:
            async with asyncio.timeout(patience):
                await slot.granted
        except BaseException as error:
            self._queue.discard(ticket)
            if not slot.granted.cancelled():  # it was granted in the same moment
                self.give_back(slot)
            if isinstance(error, TimeoutError):
                raise DeadlinePassedError from None
            raise
        slot.waited_s = time.monotonic() - began
        return slot

    def give_back(self, slot: RequestSlot) -> None:
        """Let the next request have a slot that was granted."""
        self._held[slot.lane] -= 1
        self._grant()

    def _grant(self) -> None:
        """Give what is free to those who are next."""
        while (lane := self._next()) and (parts := self._queue.take(1, lane)):
            slot = parts[0].ticket.item
            if not slot.granted.cancelled():
                self._held[lane] += 1
                slot.granted.set_result(None)

    def _next(self) -> Lane | None:
        """The lane that gets the next slot; None while nobody does."""
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
