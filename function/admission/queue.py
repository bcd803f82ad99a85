"""The queue in front of the places: how long it is in each lane, and who can still be served.

How long a new request would wait follows from Little's law: with λ requests leaving per second,
one that finds L ahead of it waits L / λ seconds; and with P places that are held for S seconds
each, λ = P / S. S is learned from the last requests. A lane that has a share of all turns waits no
longer than that makes it.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.turn import SHARES, Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_RECENT = 32
_LANES = tuple(Lane)


@dataclass(frozen=True, slots=True)
class Load:
    """What a new request finds.

    Attributes:
        in_flight: requests that wait or hold a place, by lane.
        places: how many may hold one.
        hold_s: how long one is held, on average; None while nothing is known.
        long_s: the same for the slowest tenth.
    """

    in_flight: Mapping[Lane, int]
    places: int
    hold_s: float | None = None
    long_s: float = 0.0

    def ahead(self, lane: Lane) -> int:
        """Requests that get a place before a new one of this lane, or hold one already."""
        urgent = _LANES.index(lane)
        before = sum(self.in_flight.get(each, 0) for each in _LANES[: urgent + 1])
        behind = sum(self.in_flight.get(each, 0) for each in _LANES[urgent + 1 :])
        return before + min(behind, self.places)

    def wait_s(self, lane: Lane) -> float:
        """Seconds until a new request of this lane has a place.

        While nothing is known, a turn is guessed to take one second. However many are more urgent,
        those of its own lane have their turns by its share.
        """
        turns: float = max(0, self.ahead(lane) + 1 - self.places)
        if share := SHARES.get(lane):
            turns = min(turns, (self.in_flight.get(lane, 0) + 1) * 100 / share)
        return turns * (1.0 if self.hold_s is None else self.hold_s) / self.places


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not let in, and when it would be.

    Attributes:
        late: it would not meet its deadline; else its lane is full.
        wait_s: how long it would wait for a place.
        again_s: after how many seconds there is room, if nobody else comes.
    """

    late: bool
    wait_s: float
    again_s: float


def decide(load: Load, lane: Lane, *, limit: int, left_s: float) -> Refusal | None:
    """Whether a new request is let in: None.

    A request that need not wait always is, as its own time is not known before it is served, and
    what is learned must be learned from somebody.

    Args:
        load: what it finds.
        lane: its lane.
        limit: how many requests of one lane may wait.
        left_s: seconds to its deadline.
    """
    wait_s = load.wait_s(lane)
    if load.in_flight.get(lane, 0) >= limit + load.places:
        return Refusal(late=False, wait_s=wait_s, again_s=wait_s)
    slack_s = left_s - load.long_s
    if wait_s and load.hold_s is not None and wait_s > slack_s:
        return Refusal(late=True, wait_s=wait_s, again_s=wait_s - max(0.0, slack_s))
    return None


class Queue:
    """Counts the requests in flight, and learns how long they hold a place.

    Args:
        places: tells how many requests may hold one.
        limit: how many of one lane may wait.
    """

    def __init__(self, places: Callable[[], int], limit: int) -> None:
        self._places = places
        self.limit = limit
        self._in_flight: Counter[Lane] = Counter()
        self._total = 0
        self._recent: deque[float] = deque(maxlen=_RECENT)

    @property
    def load(self) -> Load:
        """What a new request finds now."""
        recent = sorted(self._recent)
        if not recent:
            return Load(self._in_flight, self._places())
        mean, long = statistics.fmean(recent), recent[len(recent) * 9 // 10]
        return Load(self._in_flight, self._places(), mean, long)

    @property
    def open(self) -> bool:
        """Whether a place is free, so that nobody is refused."""
        return self._total < self._places()

    def in_flight(self, lane: Lane) -> int:
        """Requests of one lane that wait or hold a place."""
        return self._in_flight[lane]

    def wait_s(self, lane: Lane) -> float:
        """Seconds until a new request of this lane has a place."""
        return 0.0 if self.open else self.load.wait_s(lane)

    def refusal(self, lane: Lane, left_s: float = math.inf) -> Refusal | None:
        """See `decide`."""
        if self.open:
            return None  # as `decide` would say
        return decide(self.load, lane, limit=self.limit, left_s=left_s)

    def enter(self, lane: Lane) -> None:
        """One more is in flight."""
        self._in_flight[lane] += 1
        self._total += 1

    def leave(self, lane: Lane) -> None:
        """One less is."""
        self._in_flight[lane] -= 1
        self._total -= 1

    def learn(self, hold_s: float) -> None:
        """Remember how long one request has held its place."""
        self._recent.append(hold_s)
