"""The queue in front of the places: how long it is in each lane, and who can still be served.

How long a new request would wait follows from Little's law: with λ requests leaving per second,
one that finds L ahead of it waits L / λ seconds; and with P places that are held for S seconds
each, λ = P / S. S is learned from the last requests, and from those that hold a place for longer. A
lane that has a share of all turns waits no longer than that makes it.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from function.admission.promises import Promises
from function.request_context import SHARES, Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from function.request_context import RequestContext

_RECENT, _LATEST = 32, 8
_PATIENCE_S = 60.0
"""A deadline that is further away counts as that far, as it does in `runtime.queue`."""
_LANES = tuple(Lane)


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """What a new request finds.

    Attributes:
        in_flight: requests that wait or hold a place, by lane.
        places: how many may hold one.
        hold_s: how long one is held, on average; None while nothing is known.
        long_s: the same for the slowest tenth.
        guess_s: what is taken for `hold_s` while nothing is known.
    """

    in_flight: Mapping[Lane, int]
    places: int
    hold_s: float | None = None
    long_s: float = 0.0
    guess_s: float = 1.0

    def ahead(self, lane: Lane) -> int:
        """Requests that get a place before a new one of this lane, or hold one already."""
        urgent = _LANES.index(lane)
        before = sum(self.in_flight.get(each, 0) for each in _LANES[: urgent + 1])
        behind = sum(self.in_flight.get(each, 0) for each in _LANES[urgent + 1 :])
        return before + min(behind, self.places)

    def wait_s(self, lane: Lane) -> float:
        """Seconds until a new request of this lane has a place.

        However many are more urgent,
        those of its own lane have their turns by its share.
        """
        turns: float = max(0, self.ahead(lane) + 1 - self.places)
        if share := SHARES.get(lane):
            turns = min(turns, (self.in_flight.get(lane, 0) + 1) * 100 / share)
        return turns * (self.guess_s if self.hold_s is None else self.hold_s) / self.places


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


def decide(load: LaneLoad, lane: Lane, *, limit: int, left_s: float) -> Refusal | None:
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


@dataclass(frozen=True, slots=True, eq=False)
class Follower:
    """A request whose wait is looked at again and again.

    Attributes:
        context: its lane, its deadline, and whether it has had a place.
        key: its deadline, as far as the order goes.
        tell: tells it that it cannot be done in time any more.
    """

    context: RequestContext
    key: float
    tell: Callable[[Refusal], None]


class LoadEstimator:
    """Counts the requests in flight, and learns how long they hold a place.

    Args:
        places: tells how many requests may hold one.
        limit: how many of one lane may wait.
        clock: seconds of the deadlines, never going back.

    Attributes:
        promises: those who were refused, by lane.
    """

    def __init__(
        self,
        places: Callable[[], int],
        limit: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places, self._clock = places, clock
        self.limit = limit
        self.promises = {lane: Promises(clock) for lane in Lane}
        self._followed: dict[Follower, None] = {}
        self._in_flight: Counter[Lane] = Counter()
        self._total = 0
        self._recent: deque[float] = deque(maxlen=_RECENT)

    @property
    def load(self) -> LaneLoad:
        """What a new request finds now."""
        recent, ages = sorted(self._recent), self._ages()
        if not recent:
            # One second is what is guessed; the first burst shows whether it takes longer.
            longer = statistics.fmean(ages) if ages else 0.0
            return LaneLoad(self._in_flight, self._places(), guess_s=max(1.0, longer))
        mean, long = statistics.fmean(recent), recent[len(recent) * 9 // 10]
        return LaneLoad(self._in_flight, self._places(), mean, long)

    def _ages(self) -> list[float]:
        """For how long each request has had its place that has one."""
        now = self._clock()
        return [now - each.context.started_at for each in self._followed if each.context.started]

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

    def refusal(
        self, lane: Lane, left_s: float = math.inf, *, told: bool = False
    ) -> Refusal | None:
        """See `decide`; in a lane those with later deadlines are behind.

        Args:
            lane: of the request.
            left_s: seconds to its deadline.
            told: whether it was told to come now; else those who were told to come are before it.
        """
        if self.open:
            return None  # as `decide` would say
        promised = 0 if told else len(self.promises[lane])
        load = self.load
        full = self._in_flight[lane] + promised >= self.limit + load.places
        if not full:
            promised -= self._behind(lane, self._clock() + left_s)
        own = max(self._in_flight[lane] + promised, min(self._in_flight[lane], load.places))
        load = replace(load, in_flight={**self._in_flight, lane: own})
        if told:
            load = replace(load, long_s=load.hold_s or 0.0)
        return decide(load, lane, limit=self.limit, left_s=left_s)

    def _behind(self, lane: Lane, deadline: float) -> int:
        """How many requests of a lane wait that a new one with that deadline overtakes."""
        key = min(deadline, self._clock() + _PATIENCE_S)
        return sum(
            each.key > key and each.context.lane is lane and not each.context.started
            for each in self._followed
        )

    def follow(self, context: RequestContext, tell: Callable[[Refusal], None]) -> Follower:
        """Look at a request's wait again whenever something changes, see `renew`."""
        waiting = Follower(context, min(context.deadline, self._clock() + _PATIENCE_S), tell)
        self._followed[waiting] = None
        return waiting

    def forget(self, waiting: Follower) -> None:
        """Follow a request no longer."""
        self._followed.pop(waiting, None)

    def renew(self) -> None:
        """Tell those who wait and would not even begin before their deadline, as it is now."""
        if len(self._followed) <= self._places():
            return
        ages, latest = self._ages(), list(self._recent)[-_LATEST:]
        hold_s = max(statistics.fmean(each) if each else 0.0 for each in (ages, latest))
        load, now = LaneLoad(self._in_flight, self._places(), hold_s), self._clock()
        for lane in Lane:
            waiting = [each for each in self._followed if each.context.lane is lane]
            waiting = sorted((each for each in waiting if not each.context.started), key=_key)
            first = self._in_flight[lane] - len(waiting)
            for place, each in enumerate(waiting, first):
                found = replace(load, in_flight={**self._in_flight, lane: place})
                left_s, wait_s = each.context.deadline - now, found.wait_s(lane)
                if wait_s > max(0.0, left_s):
                    again_s = load.wait_s(lane)
                    each.tell(Refusal(late=True, wait_s=wait_s, again_s=again_s))

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


def _key(waiting: Follower) -> float:
    return waiting.key
