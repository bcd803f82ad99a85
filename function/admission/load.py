"""How long a request would wait for a slot, and whether it can still be served in time.

How long a new request would wait follows from Little's law: with λ requests leaving per second,
one that finds L ahead of it waits L / λ seconds; and with S slots that are held for H seconds
each, λ = S / H. H is learned from the last requests, and from those that hold a slot for longer.
A lane that has a share waits no longer than that makes it.

An example: 4 slots that are held for 0.5 seconds. A standard request that finds 10 in flight is
the seventh that waits, so (10 + 1 - 4) · 0.5 / 4 = 0.9 seconds. A bulk request behind 100 others
would wait 97 · 0.5 / 4 = 12 seconds; but bulk has every twentieth slot, so 20 · 0.5 / 4 = 2.5.
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
    from typing import Self

    from function.request_context import RequestContext

_RECENT, _LATEST = 32, 8
_PATIENCE_S = 60.0
"""A deadline that is further away counts as that far, as in `runtime.scheduling.queue`."""
_LANES = tuple(Lane)


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """What a new request finds.

    Attributes:
        in_flight: requests that wait or hold a slot, by lane.
        slots: how many may hold one.
        hold_s: how long one is held, on average; None while nothing is known.
        long_s: the same for the slowest tenth.
        guess_s: what is taken for `hold_s` while nothing is known.
    """

    in_flight: Mapping[Lane, int]
    slots: int
    hold_s: float | None = None
    long_s: float = 0.0
    guess_s: float = 1.0

    def ahead(self, lane: Lane) -> int:
        """Requests that get a slot before a new one of this lane, or hold one already."""
        urgent = _LANES.index(lane)
        before = sum(self.in_flight.get(each, 0) for each in _LANES[: urgent + 1])
        behind = sum(self.in_flight.get(each, 0) for each in _LANES[urgent + 1 :])
        return before + min(behind, self.slots)

    def wait_s(self, lane: Lane) -> float:
        """Seconds until a new request of this lane has a slot.

        However many are more urgent, those of its own lane are served by its share.
        """
        ends: float = max(0, self.ahead(lane) + 1 - self.slots)
        if share := SHARES.get(lane):
            ends = min(ends, (self.in_flight.get(lane, 0) + 1) * 100 / share)
        return ends * (self.guess_s if self.hold_s is None else self.hold_s) / self.slots

    def eta_s(self, requests: int) -> float | None:
        """Seconds until so many requests are done; None while nothing is known."""
        if self.hold_s is None:
            return None
        return max(self.hold_s, requests * self.hold_s / self.slots)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not let in, and when it would be.

    Attributes:
        late: it would not meet its deadline; else its lane is full.
        wait_s: how long it would wait for a slot.
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
    if load.in_flight.get(lane, 0) >= limit + load.slots:
        return Refusal(late=False, wait_s=wait_s, again_s=wait_s)
    slack_s = left_s - load.long_s
    if wait_s and load.hold_s is not None and wait_s > slack_s:
        return Refusal(late=True, wait_s=wait_s, again_s=wait_s - max(0.0, slack_s))
    return None


@dataclass(slots=True, eq=False)
class InFlight:
    """A request that waits for a slot or holds one, as a context manager: counted until its end.

    Attributes:
        estimator: counts it.
        context: its lane, its deadline, and since when it has its slot.
        key: its deadline, as far as the order goes.
        give_up: called once it cannot be served in time any more.
        typical: whether how long it holds its slot says how long others will.
    """

    estimator: LoadEstimator
    context: RequestContext
    key: float
    give_up: Callable[[Refusal], None] | None
    typical: bool

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.estimator.leave(self, served=kind is None)


class LoadEstimator:
    """Counts the requests in flight, and learns how long they hold a slot.

    Args:
        slots: how many requests may hold one at the moment.
        limit: how many of one lane may wait.
        clock: seconds of the deadlines, never going back.

    Attributes:
        promises: when those who were refused come again, by lane.
    """

    def __init__(
        self,
        slots: Callable[[], int],
        limit: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slots, self._clock = slots, clock
        self.limit = limit
        self.promises = {lane: Promises(clock) for lane in Lane}
        self._followed: dict[InFlight, None] = {}
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
            return LaneLoad(self._in_flight, self._slots(), guess_s=max(1.0, longer))
        mean, long = statistics.fmean(recent), recent[len(recent) * 9 // 10]
        return LaneLoad(self._in_flight, self._slots(), mean, long)

    @property
    def open(self) -> bool:
        """Whether a slot is free, so that nobody is refused."""
        return self._total < self._slots()

    def in_flight(self, lane: Lane) -> int:
        """Requests of one lane that wait or hold a slot."""
        return self._in_flight[lane]

    def wait_s(self, lane: Lane) -> float:
        """Seconds until a new request of this lane has a slot."""
        return 0.0 if self.open else self.load.wait_s(lane)

    def refusal(
        self, lane: Lane, left_s: float = math.inf, *, invited: bool = False
    ) -> Refusal | None:
        """Whether a new request is let in, as `decide` says: None.

        In its lane those with later deadlines are behind it.

        Args:
            lane: of the request.
            left_s: seconds to its deadline.
            invited: whether it was asked to come now; else those who were are before it.
        """
        if self.open:
            return None  # as `decide` would say
        promised = 0 if invited else len(self.promises[lane])
        load = self.load
        full = self._in_flight[lane] + promised >= self.limit + load.slots
        if not full:
            promised -= self._behind(lane, self._clock() + left_s)
        own = max(self._in_flight[lane] + promised, min(self._in_flight[lane], load.slots))
        load = replace(load, in_flight={**self._in_flight, lane: own})
        if invited:
            load = replace(load, long_s=load.hold_s or 0.0)
        return decide(load, lane, limit=self.limit, left_s=left_s)

    def enter(
        self,
        context: RequestContext,
        give_up: Callable[[Refusal], None] | None = None,
        *,
        typical: bool = True,
    ) -> InFlight:
        """Count one more request, until the end of `with`.

        Args:
            context: its lane, its deadline, and since when it has its slot.
            give_up: called once it cannot be served in time any more; None for one that waits as
                long as it takes.
            typical: whether how long it holds its slot says how long others will.
        """
        key = min(context.deadline, self._clock() + _PATIENCE_S)
        entry = InFlight(self, context, key, give_up, typical)
        self._in_flight[context.lane] += 1
        self._total += 1
        if give_up:
            self._followed[entry] = None
        self.renew()
        return entry

    def leave(self, entry: InFlight, *, served: bool) -> None:
        """Count a request no more; one that was served teaches how long a slot is held."""
        self._in_flight[entry.context.lane] -= 1
        self._total -= 1
        self._followed.pop(entry, None)
        if served and entry.typical and entry.context.started:
            self.learn(self._clock() - entry.context.started_at)
        if served:
            self.renew()

    def learn(self, hold_s: float) -> None:
        """Remember how long one request has held its slot."""
        self._recent.append(hold_s)

    def renew(self) -> None:
        """Let those give up who would not even begin before their deadline, as it is now."""
        if len(self._followed) <= self._slots():
            return
        ages, latest = self._ages(), list(self._recent)[-_LATEST:]
        hold_s = max(statistics.fmean(each) if each else 0.0 for each in (ages, latest))
        load, now = LaneLoad(self._in_flight, self._slots(), hold_s), self._clock()
        for lane in Lane:
            own = (each for each in self._followed if each.context.lane is lane)
            waiting = sorted((each for each in own if not each.context.started), key=_key)
            first = self._in_flight[lane] - len(waiting)
            for ahead, each in enumerate(waiting, first):
                found = replace(load, in_flight={**self._in_flight, lane: ahead})
                left_s, wait_s = each.context.deadline - now, found.wait_s(lane)
                if each.give_up and wait_s > max(0.0, left_s):
                    each.give_up(Refusal(late=True, wait_s=wait_s, again_s=load.wait_s(lane)))

    def _ages(self) -> list[float]:
        """For how long each request has had its slot that has one."""
        now = self._clock()
        return [now - each.context.started_at for each in self._followed if each.context.started]

    def _behind(self, lane: Lane, deadline: float) -> int:
        """How many requests of a lane wait that a new one with that deadline overtakes."""
        key = min(deadline, self._clock() + _PATIENCE_S)
        return sum(
            each.key > key and each.context.lane is lane and not each.context.started
            for each in self._followed
        )


def _key(entry: InFlight) -> float:
    return entry.key
