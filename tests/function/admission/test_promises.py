"""`Retry-After` is true, and a vain wait is ended early: whole queues, in made-up time."""

from __future__ import annotations

import math
import random
from heapq import heappop, heappush
from typing import NamedTuple

import pytest

from function.admission.load import InFlight, LoadEstimator
from function.admission.promises import Promises
from function.request_context import Lane, RequestContext

RTT_S = 0.003


class Waiting(NamedTuple):
    """A request that was let in; `after` is called when it has been served."""

    key: float
    context: RequestContext
    in_flight: InFlight
    after: object


class World:
    """A replica of so many slots, and clients that come again exactly when they are asked to.

    Args:
        slots: how many requests are in work at once.
        limit: how many may wait.
        hold_s: gives how long each holds its slot.
    """

    def __init__(self, slots, limit, hold_s):
        self.now, self._order, self._events = 0.0, 0, []
        self.slots, self.hold_s = slots, hold_s
        self.load = LoadEstimator(lambda: slots, limit, clock=lambda: self.now)
        self.waiting, self.held = [], 0
        self.retries, self.let_in, self.served, self.late, self.given_up = 0, 0, 0, 0, []

    def at(self, moment, call, *args):
        self._order += 1
        heappush(self._events, (moment, self._order, call, args))

    def run(self, until):
        while self._events and self._events[0][0] <= until:
            self.now, _, call, args = heappop(self._events)
            call(*args)
        self.now = until

    def come(self, timeout_s, after=None, again=False):
        """A request; `after` is called when it has been served."""
        lane = Lane.STANDARD
        invited = self.load.promises[lane].redeem()
        refusal = self.load.refusal(lane, timeout_s, invited=invited)
        self.retries += again
        self.let_in += again and refusal is None
        if refusal:
            self.refuse(refusal, timeout_s, after)
            return
        context = RequestContext(lane, self.now + timeout_s)
        in_flight = self.load.enter(context, lambda refusal: self.give_up(request))
        request = Waiting(min(context.deadline, self.now + 60), context, in_flight, after)
        self.waiting.append(request)
        self.load.renew()
        self.grant()

    def refuse(self, refusal, timeout_s, after):
        seconds = self.load.promises[Lane.STANDARD].make(refusal.again_s)
        self.at(self.now + seconds + RTT_S, self.come, timeout_s, after, True)

    def give_up(self, request):
        self.given_up.append(request.context.deadline - self.now)
        self.waiting.remove(request)
        self.load.leave(request.in_flight, served=False)

    def grant(self):
        while self.held < self.slots and self.waiting:
            self.waiting.sort(key=lambda request: request.key)
            request = self.waiting.pop(0)
            if request.context.deadline <= self.now:
                self.late += 1
                self.load.leave(request.in_flight, served=False)
                continue
            self.held += 1
            request.context.started_at = self.now
            self.at(self.now + self.hold_s(), self.done, request)

    def done(self, request):
        self.held -= 1
        self.served += 1
        self.load.leave(request.in_flight, served=True)
        self.grant()
        if request.after:
            self.at(self.now + RTT_S, request.after)


def world(slots=4, limit=64, mean_s=0.3, seed=1):
    rng = random.Random(seed)
    return World(slots, limit, lambda: mean_s * rng.uniform(0.7, 1.3))


@pytest.mark.parametrize("seed", range(5))
def test_after_a_burst_nearly_all_who_come_again_when_asked_to_are_let_in(seed):
    made = world(limit=8, seed=seed)
    for _ in range(60):
        made.at(0.0, made.come, 120.0)
    made.run(120)
    assert made.served == 60
    assert made.retries >= 48
    assert made.let_in >= 0.9 * made.retries


@pytest.mark.parametrize("timeout_s", [1.5, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_so_are_closed_loops_of_clients_who_ask_for_more_than_there_is(timeout_s, seed):
    """Each client sends the next request at once, and waits as asked when it is refused."""
    made = world(limit=20, seed=seed)

    def again():
        made.come(timeout_s, again)

    for n in range(60):
        made.at(n * 0.01, again)
    made.run(300)
    assert made.retries > 100
    assert made.let_in >= 0.9 * made.retries
    assert made.served >= 0.9 * 300 * made.slots / 0.3


@pytest.mark.parametrize("seed", range(3))
def test_so_are_requests_that_come_at_random_for_a_while(seed):
    made, rng = world(seed=seed), random.Random(seed)
    due = 0.0
    while due < 40:
        made.at(due, made.come, 2.0)
        due += rng.expovariate(1.3 * made.slots / 0.3)
    made.run(600)
    assert made.retries > 50
    assert made.let_in >= 0.9 * made.retries


def test_who_is_in_a_hurry_is_not_refused_for_those_it_overtakes():
    made = world(limit=50)
    for _ in range(10):
        made.come(60.0)
    made.run(1.0)
    for _ in range(40):
        made.come(60.0)
    assert made.load.refusal(Lane.STANDARD, 1.5) is None
    assert made.load.load.wait_s(Lane.STANDARD) > 1.5


def test_a_wait_that_has_become_vain_ends_long_before_the_deadline():
    """Requests take a hundred times as long as they did when the requests were let in."""
    slow = iter([0.1] * 10 + [10.0] * 1000)
    made = World(2, 100, lambda: next(slow))
    for _ in range(10):
        made.come(120.0)
    made.run(5.0)
    for _ in range(60):
        made.come(120.0)
    made.run(45.0)
    assert len(made.given_up) >= 60 - 2 - 2 * 12 - 4
    assert min(made.given_up) >= 60.0
    made.run(400.0)
    assert made.late <= 2  # their slot came a moment too late


def test_the_first_burst_shows_how_long_a_request_takes_before_one_has_ended():
    made = World(2, 100, lambda: 30.0)
    for _ in range(6):
        made.come(120.0)
    before = made.load.wait_s(Lane.STANDARD)
    made.run(8.0)
    assert made.load.wait_s(Lane.STANDARD) == pytest.approx(8 * before)


def test_a_promise_is_redeemed_once_and_by_who_comes_in_time():
    now = 0.0
    promises = Promises(lambda: now)
    assert [promises.make(again_s) for again_s in (0.0, 0.2, 1.5, math.inf)] == [1, 1, 2, 60]
    assert not promises.redeem()
    now = 1.01
    assert [promises.redeem() for _ in range(3)] == [True, True, False]
    assert len(promises) == 2
    now = 10.0
    assert not promises.redeem()  # who was asked to come at 2 has not
    assert len(promises) == 1
