"""What each lane has coming: one account for all the queues that a request goes through.

A request waits for a slot, then for permits, then in batches. If each queue counted shares for
itself, a lane would have to earn its row anew in each, and those waits would add up. So there is
one account: a lane earns while anything of it is in flight, wherever that is, and spends what it
has wherever it waits.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from function.request_context import SHARES, Lane

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROW = 100  # the credit that one row costs
_MOST = 100 * _ROW  # what a lane can have coming: some full batches, or about eight swaps


class LaneShares:
    """The account of every lane that has a share; for any thread.

    What is counted is rows: one for a step that a thread does, one for each item of a batch. Of
    every row that is given out, to whomever, each lane that is in flight earns its share.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._credit = dict.fromkeys(SHARES, 0)
        self._in_flight: Counter[Lane] = Counter()

    @contextmanager
    def in_flight(self, lane: Lane) -> Iterator[None]:
        """Something of a lane is in flight while the body runs."""
        self.enter(lane)
        try:
            yield
        finally:
            self.leave(lane)

    def enter(self, lane: Lane) -> None:
        """Something of a lane is in flight from now on."""
        with self._lock:
            self._in_flight[lane] += 1

    def leave(self, lane: Lane) -> None:
        """It is no more; what its lane has earned stays, as clients come again."""
        with self._lock:
            self._in_flight[lane] -= 1

    def owed(self, lane: Lane) -> int:
        """How many rows a lane has earned and not had."""
        return self._credit.get(lane, 0) // _ROW

    def order(self) -> list[Lane]:
        """The lanes in the order in which they are served now; some stand there twice."""
        return [*(lane for lane in SHARES if self.owed(lane)), *Lane]

    def give(self, lane: Lane, rows: int = 1) -> None:
        """So many rows are given to a lane; what it has not earned, it gets for nothing.

        An example: bulk has 5 % and waits. After 19 interactive rows it has earned 19 · 5 = 95,
        which is not yet a row; after the twentieth it has 100, so that it goes first, before every
        interactive row. That costs it 100.
        """
        with self._lock:
            for each, share in SHARES.items():
                if self._in_flight[each]:
                    self._credit[each] = min(_MOST, self._credit[each] + share * rows)
            if lane in SHARES:
                self._credit[lane] = max(0, self._credit[lane] - _ROW * rows)
