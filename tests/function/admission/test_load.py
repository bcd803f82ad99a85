"""How long the queue is, and whom it takes: pure decisions, checked against a simulated queue."""

from __future__ import annotations

import heapq
import math

from hypothesis import given
from hypothesis import strategies as st

from function.admission.load import LaneLoad, LoadEstimator, decide
from function.request_context import SHARES, Lane, RequestContext
from function.runtime.scheduling.queue import Queue as Places
from function.runtime.scheduling.queue import Ticket

COUNTS = st.fixed_dictionaries({lane: st.integers(0, 200) for lane in Lane})
PLACES = st.integers(1, 64)
HOLD = st.floats(0.001, 10)


def simulated_wait(ahead, places, hold_s):
    """When a request gets a place behind `ahead` others that all hold one for `hold_s`."""
    free = [0.0] * places
    for _ in range(ahead):
        heapq.heapreplace(free, free[0] + hold_s)
    return free[0]


@given(st.integers(0, 300), PLACES, HOLD)
def test_the_predicted_wait_is_within_one_turn_of_a_queue_that_is_played_through(n, places, hold):
    predicted = LaneLoad({Lane.STANDARD: n}, places, hold).wait_s(Lane.STANDARD)
    assert abs(predicted - simulated_wait(n, places, hold)) <= hold * (1 + 1e-9)


@given(st.integers(0, 200), PLACES, HOLD)
def test_of_lanes_that_are_equally_long_the_more_urgent_never_waits_longer(count, places, hold):
    load = LaneLoad(dict.fromkeys(Lane, count), places, hold)
    waits = [load.wait_s(lane) for lane in Lane]
    assert waits == sorted(waits)


@given(COUNTS, PLACES, HOLD, st.sampled_from(Lane), st.floats(0, 100))
def test_who_need_not_wait_is_never_refused_for_its_deadline(counts, places, hold, lane, left):
    load = LaneLoad(counts, places, hold, long_s=hold)
    refusal = decide(load, lane, limit=10_000, left_s=left)
    assert load.wait_s(lane) > 0 or refusal is None


@given(COUNTS, PLACES, HOLD, st.sampled_from(Lane), st.floats(0.01, 100))
def test_who_comes_again_when_told_is_let_in_if_nobody_else_came(counts, places, hold, lane, left):
    load = LaneLoad(counts, places, hold, long_s=hold)
    if not (refusal := decide(load, lane, limit=10_000, left_s=left)):
        return
    assert refusal.late
    gone = math.ceil(refusal.again_s * places / hold - 1e-9)
    if gone <= counts[lane]:
        later = counts | {lane: counts[lane] - gone}
        assert decide(LaneLoad(later, places, hold, hold), lane, limit=10_000, left_s=left) is None


@given(COUNTS, st.sampled_from(Lane), st.integers(1, 50))
def test_the_limit_of_a_lane_holds_whatever_the_deadline(counts, lane, limit):
    refusal = decide(LaneLoad(counts, 2), lane, limit=limit, left_s=math.inf)
    assert (refusal is None) == (counts[lane] < limit + 2)


@given(st.sampled_from([*SHARES]), st.integers(0, 30))
def test_a_lane_with_a_share_waits_as_promised_while_more_urgent_ones_keep_coming(lane, own):
    queue = Places()
    for _ in range(own):
        queue.put(Ticket(lane, RequestContext(lane)), 0.0)
    queue.put(Ticket("mine", RequestContext(lane)), 0.0)
    turns, item = 0, None
    while item != "mine":
        queue.put(Ticket(None, RequestContext(Lane.INTERACTIVE)), 0.0)
        item = queue.take(1)[0].ticket.item
        turns += 1
    promised = LaneLoad({Lane.INTERACTIVE: 100_000, lane: own}, 1, 1.0).wait_s(lane)
    assert promised == (own + 1) * 100 / SHARES[lane]
    assert promised <= turns <= promised + 1


def test_a_lone_bulk_request_is_not_refused_for_a_long_queue_of_others():
    load = LaneLoad({Lane.STANDARD: 1000}, 1, 1.0)
    assert decide(load, Lane.STANDARD, limit=2000, left_s=60).late
    assert decide(load, Lane.BULK, limit=2000, left_s=60) is None


def test_nothing_is_refused_for_its_deadline_before_a_turn_is_known():
    assert decide(LaneLoad({Lane.BULK: 50}, 1), Lane.BULK, limit=100, left_s=0.001) is None


def test_bulk_in_front_delays_the_interactive_lane_by_the_places_it_holds_at_most():
    load = LaneLoad({Lane.BULK: 1000}, 4, 1.0)
    assert load.wait_s(Lane.INTERACTIVE) == 0.25
    assert load.wait_s(Lane.BULK) == 997 / 4


def test_a_queue_learns_from_the_last_turns_only():
    queue = LoadEstimator(lambda: 1, 10)
    for hold_s in [9.0] * 10 + [1.0] * 32:
        queue.learn(hold_s)
    assert (queue.load.hold_s, queue.load.long_s) == (1.0, 1.0)


def test_whoever_leaves_makes_room():
    queue = LoadEstimator(lambda: 1, 1)
    for _ in range(5):
        queue.enter(Lane.BULK)
        queue.enter(Lane.BULK)
        assert queue.refusal(Lane.BULK)
        assert not queue.refusal(Lane.STANDARD)
        queue.leave(Lane.BULK)
        queue.leave(Lane.BULK)
    assert queue.in_flight(Lane.BULK) == 0


@given(COUNTS, PLACES, st.lists(HOLD, max_size=40), st.sampled_from(Lane), st.floats(0, 100))
def test_the_shorter_way_decides_the_same(counts, places, holds, lane, left):
    queue = LoadEstimator(lambda: places, 20)
    for each, count in counts.items():
        for _ in range(count):
            queue.enter(each)
    for hold_s in holds:
        queue.learn(hold_s)
    assert queue.refusal(lane, left) == decide(queue.load, lane, limit=20, left_s=left)
    assert queue.wait_s(lane) == queue.load.wait_s(lane)
