"""`Retry-After` is true, and a wait that has become vain is told: whole queues, in made-up time."""

from __future__ import annotations

import math
import random
from heapq import heappop, heappush

import pytest

from function.admission.load import LoadEstimator
from function.admission.promises import Promises
from function.request_context import Lane, RequestContext

RTT_S = 0.003


class World:
    """A replica of so many places, and clients that come again exactly when they are told to.

    Args:
        places: how many requests are in work at once.
        limit: how many may wait.
        hold_s: gives how long each holds its place.
    """

    def __init__(self, places, limit, hold_s):
        self.now, self._order, self._events = 0.0, 0, []
        self.places, self.hold_s = places, hold_s
        self.queue = LoadEstimator(lambda: places, limit, clock=lambda: self.now)
        self.waiting, self.held = [], 0
        self.retries, self.let_in, self.served, self.late, self.told = 0, 0, 0, 0, []

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
        told = self.queue.promises[lane].redeem()
        refusal = self.queue.refusal(lane, timeout_s, told=told)
        self.retries += again
        self.let_in += again and refusal is None
        if refusal:
            self.refuse(refusal, timeout_s, after)
            return
        context = RequestContext(lane, self.now + timeout_s)
        self.queue.enter(lane)
        followed = self.queue.follow(context, lambda refusal: self.give_up(entry, refusal))
        entry = [
            min(context.deadline, self.now + 60),
            self.now,
            context,
            followed,
            timeout_s,
            after,
        ]
        self.waiting.append(entry)
        self.queue.renew()
        self.grant()

    def refuse(self, refusal, timeout_s, after):
        seconds = self.queue.promises[Lane.STANDARD].make(refusal.again_s)
        self.at(self.now + seconds + RTT_S, self.come, timeout_s, after, True)

    def give_up(self, entry, refusal):
        self.told.append(entry[2].deadline - self.now)
        self.waiting.remove(entry)
        self.leave(entry)

    def grant(self):
        while self.held < self.places and self.waiting:
            self.waiting.sort(key=lambda entry: entry[0])
            entry = self.waiting.pop(0)
            context = entry[2]
            if context.deadline <= self.now:
                self.late += 1
                self.leave(entry)
                continue
            self.held += 1
            context.started_at = self.now
            hold_s = self.hold_s()
            self.at(self.now + hold_s, self.done, entry, hold_s)

    def leave(self, entry):
        self.queue.leave(Lane.STANDARD)
        self.queue.forget(entry[3])

    def done(self, entry, hold_s):
        self.held -= 1
        self.served += 1
        self.leave(entry)
        self.queue.learn(hold_s)
        self.queue.renew()
        self.grant()
        if after := entry[5]:
            self.at(self.now + RTT_S, after)


def world(places=4, limit=64, mean_s=0.3, seed=1):
    rng = random.Random(seed)
    return World(places, limit, lambda: mean_s * rng.uniform(0.7, 1.3))


@pytest.mark.parametrize("seed", range(5))
def test_after_a_burst_nearly_all_who_come_again_when_told_are_let_in(seed):
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
    """Each client sends the next request at once, and waits as told when it is refused."""
    made = world(limit=20, seed=seed)

    def again():
        made.come(timeout_s, again)

    for n in range(60):
        made.at(n * 0.01, again)
    made.run(300)
    assert made.retries > 100
    assert made.let_in >= 0.9 * made.retries
    assert made.served >= 0.9 * 300 * made.places / 0.3


@pytest.mark.parametrize("seed", range(3))
def test_so_are_requests_that_come_at_random_for_a_while(seed):
    made, rng = world(seed=seed), random.Random(seed)
    due = 0.0
    while due < 40:
        made.at(due, made.come, 2.0)
        due += rng.expovariate(1.3 * made.places / 0.3)
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
    assert made.queue.refusal(Lane.STANDARD, 1.5) is None
    assert made.queue.load.wait_s(Lane.STANDARD) > 1.5


def test_a_wait_that_has_become_vain_is_told_long_before_the_deadline():
    """Turns take a hundred times as long as they did when the requests were let in."""
    slow = iter([0.1] * 10 + [10.0] * 1000)
    made = World(2, 100, lambda: next(slow))
    for _ in range(10):
        made.come(120.0)
    made.run(5.0)
    for _ in range(60):
        made.come(120.0)
    made.run(45.0)
    assert len(made.told) >= 60 - 2 - 2 * 12 - 4
    assert min(made.told) >= 60.0
    made.run(400.0)
    assert made.late <= 2  # whose turn came a moment too late


def test_the_first_burst_shows_how_long_a_turn_takes_before_one_has_ended():
    made = World(2, 100, lambda: 30.0)
    for _ in range(6):
        made.come(120.0)
    before = made.queue.wait_s(Lane.STANDARD)
    made.run(8.0)
    assert made.queue.wait_s(Lane.STANDARD) == pytest.approx(8 * before)


def test_a_promise_is_redeemed_once_and_by_who_comes_in_time():
    now = 0.0
    promises = Promises(lambda: now)
    assert [promises.make(again_s) for again_s in (0.0, 0.2, 1.5, math.inf)] == [1, 1, 2, 60]
    assert not promises.redeem()
    now = 1.01
    assert [promises.redeem() for _ in range(3)] == [True, True, False]
    assert len(promises) == 2
    now = 10.0
    assert not promises.redeem()  # who was told to come at 2 has not
    assert len(promises) == 1
