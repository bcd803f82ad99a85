"""How long requests wait, and which are let in: pure decisions, against a simulated queue."""

from __future__ import annotations

import heapq
import math

from hypothesis import given
from hypothesis import strategies as st

from function.admission.load import LaneLoad, LoadEstimator, decide
from function.request_context import SHARES, Lane, RequestContext
from function.runtime.scheduling.queue import Queue, Ticket

COUNTS = st.fixed_dictionaries({lane: st.integers(0, 200) for lane in Lane})
SLOTS = st.integers(1, 64)
HOLD = st.floats(0.001, 10)


def simulated_wait(ahead, slots, hold_s):
    """When a request gets a slot behind `ahead` others that all hold one for `hold_s`."""
    free = [0.0] * slots
    for _ in range(ahead):
        heapq.heapreplace(free, free[0] + hold_s)
    return free[0]


@given(st.integers(0, 300), SLOTS, HOLD)
def test_the_predicted_wait_is_within_one_request_of_a_queue_that_is_played_through(n, slots, hold):
    predicted = LaneLoad({Lane.STANDARD: n}, slots, hold).wait_s(Lane.STANDARD)
    assert abs(predicted - simulated_wait(n, slots, hold)) <= hold * (1 + 1e-9)


@given(st.integers(0, 200), SLOTS, HOLD)
def test_of_lanes_that_are_equally_long_the_more_urgent_never_waits_longer(count, slots, hold):
    load = LaneLoad(dict.fromkeys(Lane, count), slots, hold)
    waits = [load.wait_s(lane) for lane in Lane]
    assert waits == sorted(waits)


@given(COUNTS, SLOTS, HOLD, st.sampled_from(Lane), st.floats(0, 100))
def test_who_need_not_wait_is_never_refused_for_its_deadline(counts, slots, hold, lane, left):
    load = LaneLoad(counts, slots, hold, long_s=hold)
    refusal = decide(load, lane, limit=10_000, left_s=left)
    assert load.wait_s(lane) > 0 or refusal is None


@given(COUNTS, SLOTS, HOLD, st.sampled_from(Lane), st.floats(0.01, 100))
def test_who_comes_again_in_time_is_let_in_if_nobody_else_came(counts, slots, hold, lane, left):
    load = LaneLoad(counts, slots, hold, long_s=hold)
    if not (refusal := decide(load, lane, limit=10_000, left_s=left)):
        return
    assert refusal.late
    gone = math.ceil(refusal.again_s * slots / hold - 1e-9)
    if gone <= counts[lane]:
        later = counts | {lane: counts[lane] - gone}
        assert decide(LaneLoad(later, slots, hold, hold), lane, limit=10_000, left_s=left) is None


@given(COUNTS, st.sampled_from(Lane), st.integers(1, 50))
def test_the_limit_of_a_lane_holds_whatever_the_deadline(counts, lane, limit):
    refusal = decide(LaneLoad(counts, 2), lane, limit=limit, left_s=math.inf)
    assert (refusal is None) == (counts[lane] < limit + 2)


@given(st.sampled_from([*SHARES]), st.integers(0, 30))
def test_a_lane_with_a_share_waits_as_promised_while_more_urgent_ones_keep_coming(lane, own):
    queue = Queue()
    for _ in range(own):
        queue.put(Ticket(lane, RequestContext(lane)), 0.0)
    queue.put(Ticket("own", RequestContext(lane)), 0.0)
    taken, item = 0, None
    while item != "own":
        queue.put(Ticket(None, RequestContext(Lane.INTERACTIVE)), 0.0)
        item = queue.take(1)[0].ticket.item
        taken += 1
    promised = LaneLoad({Lane.INTERACTIVE: 100_000, lane: own}, 1, 1.0).wait_s(lane)
    assert promised == (own + 1) * 100 / SHARES[lane]
    assert promised <= taken <= promised + 1


def test_a_lone_bulk_request_is_not_refused_for_a_long_queue_of_others():
    load = LaneLoad({Lane.STANDARD: 1000}, 1, 1.0)
    assert decide(load, Lane.STANDARD, limit=2000, left_s=60).late
    assert decide(load, Lane.BULK, limit=2000, left_s=60) is None


def test_nothing_is_refused_for_its_deadline_before_anything_is_known():
    assert decide(LaneLoad({Lane.BULK: 50}, 1), Lane.BULK, limit=100, left_s=0.001) is None


def test_bulk_in_front_delays_the_interactive_lane_by_the_slots_it_holds_at_most():
    load = LaneLoad({Lane.BULK: 1000}, 4, 1.0)
    assert load.wait_s(Lane.INTERACTIVE) == 0.25
    assert load.wait_s(Lane.BULK) == 997 / 4


def test_it_learns_from_the_last_requests_only():
    estimator = LoadEstimator(lambda: 1, 10)
    for hold_s in [9.0] * 10 + [1.0] * 32:
        estimator.learn(hold_s)
    assert (estimator.load.hold_s, estimator.load.long_s) == (1.0, 1.0)


def test_whoever_leaves_makes_room():
    estimator = LoadEstimator(lambda: 1, 1)
    for _ in range(5):
        with estimator.enter(RequestContext(Lane.BULK)), estimator.enter(RequestContext(Lane.BULK)):
            assert estimator.refusal(Lane.BULK)
            assert not estimator.refusal(Lane.STANDARD)
    assert estimator.in_flight(Lane.BULK) == 0


@given(COUNTS, SLOTS, st.lists(HOLD, max_size=40), st.sampled_from(Lane), st.floats(0, 100))
def test_the_shorter_way_decides_the_same(counts, slots, holds, lane, left):
    estimator = LoadEstimator(lambda: slots, 20)
    for each, count in counts.items():
        for _ in range(count):
            estimator.enter(RequestContext(each))
    for hold_s in holds:
        estimator.learn(hold_s)
    assert estimator.refusal(lane, left) == decide(estimator.load, lane, limit=20, left_s=left)
    assert estimator.wait_s(lane) == estimator.load.wait_s(lane)
