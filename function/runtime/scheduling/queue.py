"""Who comes next: lanes by urgency with a least share each; in a lane, the earliest deadline first.

A data structure without thread and clock. What is counted is rows, so that a member with eight
faces weighs as much as eight with one.
"""

from __future__ import annotations

import itertools
from collections import Counter
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from function.problems import AbandonedError, DeadlinePassedError
from function.request_context import Lane
from function.runtime.scheduling.lane_shares import LaneShares

if TYPE_CHECKING:
    from collections.abc import Hashable

    from function.problems import Problem
    from function.request_context import RequestContext

T = TypeVar("T")

_PATIENCE_S = 60.0  # the deadline, as far as the order goes, of who has a later one or none


class Ticket(Generic[T]):
    """Something that waits in a queue.

    Args:
        item: who waits.
        context: for whom it works.
        rows: how many it has.
        kind: only rows of one kind can be taken together.
        paid: whether its lane has paid for them before, as for a permit that was lent.

    Attributes:
        left: how many rows were not taken yet.
        since: when it came, in seconds.
    """

    def __init__(
        self,
        item: T,
        context: RequestContext,
        rows: int = 1,
        kind: Hashable = None,
        *,
        paid: bool = False,
    ) -> None:
        self.item, self.context, self.rows, self.kind = item, context, rows, kind
        self.paid = paid
        self.left = rows
        self.since = 0.0

    def expired(self, now: float) -> bool:
        """Whether nobody waits for it any more, or it is too late."""
        return self.context.abandoned or now >= self.context.deadline

    def error(self) -> Problem:
        """What ends it when it has expired."""
        return AbandonedError() if self.context.abandoned else DeadlinePassedError()


class TicketRows(NamedTuple, Generic[T]):
    """Some rows of a ticket, from `start` to before `stop`."""

    ticket: Ticket[T]
    start: int
    stop: int


_Entry = tuple[float, int, Ticket[T]]


class Queue(Generic[T]):
    """Tickets that wait.

    The most urgent lane goes first, except that whoever has earned a row takes it before all
    others. So no lane starves.

    Args:
        shares: what lanes earn; None for an account of its own, on which only those earn who wait
            here.
    """

    def __init__(self, shares: LaneShares | None = None) -> None:
        self.shares = shares or LaneShares()
        self._order = itertools.count()
        self._waiting: dict[Ticket[T], None] = {}  # in the order in which they came
        self._heaps: dict[Lane, dict[Hashable, list[_Entry[T]]]] = {lane: {} for lane in Lane}
        self._rows: Counter[Lane] = Counter()
        self._kinds: Counter[Hashable] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    def waiting(self, lane: Lane) -> int:
        """How many rows of a lane wait."""
        return self._rows[lane]

    def put(self, ticket: Ticket[T], now: float) -> None:
        """Let a ticket wait; it has at least one row."""
        ticket.since = now
        self._waiting[ticket] = None
        self.shares.enter(ticket.context.lane)
        self._rows[ticket.context.lane] += ticket.left
        self._kinds[ticket.kind] += ticket.left
        heap = self._heaps[ticket.context.lane].setdefault(ticket.kind, [])
        key = min(ticket.context.deadline, now + _PATIENCE_S)  # else new deadlines could starve it
        heappush(heap, (key, next(self._order), ticket))

    def discard(self, ticket: Ticket[T]) -> None:
        """Remove a ticket, if it waits."""
        if ticket in self._waiting:
            self._remove(ticket, ticket.left)

    def purge(self, now: float) -> list[Ticket[T]]:
        """Remove every ticket that has expired; returns these."""
        return self._forget([ticket for ticket in self._waiting if ticket.expired(now)])

    def clear(self) -> list[Ticket[T]]:
        """Remove every ticket; returns them."""
        return self._forget(list(self._waiting))

    def head(self, only: Lane | None = None) -> Ticket[T] | None:
        """With whom `take` would begin."""
        lanes = [only] if only else self.shares.order()
        return next(filter(None, (self._first(lane) for lane in lanes)), None)

    def most_urgent(self) -> Lane | None:
        """The most urgent lane in which something waits."""
        return next((lane for lane in Lane if self._rows[lane]), None)

    def room_for(self, ticket: Ticket[T]) -> int:
        """How many rows wait that could be taken together with this ticket, its own included."""
        return self._kinds[ticket.kind]

    def due(self, *, room: int, window: float, cost: float = 0.0) -> float:
        """When a batch that could start at once should start.

        Waiting for more rows makes no sense when it is full, and never for the interactive lane.

        Args:
            room: how many rows a batch can have.
            window: for how long the first who came may wait for others, in seconds.
            cost: seconds that a batch takes; no deadline is missed by waiting.

        Returns:
            A moment, which may have passed.
        """
        head = self.head()
        if head is None or self._rows[Lane.INTERACTIVE] or self.room_for(head) >= room:
            return 0.0
        return min(next(iter(self._waiting)).since + window, head.context.deadline - cost)

    def take(self, room: int, only: Lane | None = None) -> list[TicketRows[T]]:
        """Take up to `room` rows of one kind; what does not fit of a ticket is the next to come.

        Args:
            room: at least 1.
            only: the lane of the first of them, if it matters.
        """
        parts: list[TicketRows[T]] = []
        head = self.head(only)
        while head and room:
            kind, lane = head.kind, head.context.lane
            rows = min(room, head.left)
            if owed := self.shares.owed(lane):
                rows = min(rows, owed)
            start = head.rows - head.left
            parts.append(TicketRows(head, start, start + rows))
            room -= rows
            if not head.paid:
                self.shares.give(lane, rows)
            self._remove(head, rows)
            order = self.shares.order()
            head = next(filter(None, (self._top(each, kind) for each in order)), None)
        return _joined(parts)

    def _first(self, lane: Lane) -> Ticket[T] | None:
        """The first of a lane."""
        tops = [heap[0] for kind in list(self._heaps[lane]) if (heap := self._heap(lane, kind))]
        return min(tops)[-1] if tops else None

    def _top(self, lane: Lane, kind: Hashable) -> Ticket[T] | None:
        """The first of one kind in a lane."""
        heap = self._heap(lane, kind)
        return heap[0][-1] if heap else None

    def _heap(self, lane: Lane, kind: Hashable) -> list[_Entry[T]]:
        """Those of one kind in a lane, without those that wait no more in front."""
        heap = self._heaps[lane].get(kind, [])
        while heap and heap[0][-1] not in self._waiting:
            heappop(heap)
        if not heap:
            self._heaps[lane].pop(kind, None)
        return heap

    def _forget(self, tickets: list[Ticket[T]]) -> list[Ticket[T]]:
        for ticket in tickets:
            self.discard(ticket)
        return tickets

    def _remove(self, ticket: Ticket[T], rows: int) -> None:
        """Take rows off a ticket; without any it waits no more."""
        lane = ticket.context.lane
        ticket.left -= rows
        self._rows[lane] -= rows
        self._kinds[ticket.kind] -= rows
        if not self._kinds[ticket.kind]:
            del self._kinds[ticket.kind]
        if not ticket.left:
            del self._waiting[ticket]
            self.shares.leave(lane)


def _joined(parts: list[TicketRows[T]]) -> list[TicketRows[T]]:
    """The parts of one ticket as one, where they follow each other."""
    joined: dict[Ticket[T], TicketRows[T]] = {}
    for part in parts:
        before = joined.get(part.ticket)
        joined[part.ticket] = part._replace(start=before.start) if before else part
    return list(joined.values())
