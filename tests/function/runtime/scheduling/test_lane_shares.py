"""One account for all queues: what a lane earns where it does not wait, it spends where it does."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from function.request_context import SHARES, Lane, RequestContext
from function.runtime.scheduling.lane_shares import LaneShares
from function.runtime.scheduling.queue import Queue, Ticket


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
@settings(max_examples=30, deadline=None)
def test_a_closed_loop_through_many_queues_has_its_share_of_all_of_them(path):
    """One client of bulk, always at one step of its request; the others are everywhere."""
    shares, served, at = LaneShares(), Counter(), 0
    queues = [Queue(shares) for _ in range(4)]
    for queue in queues:
        for _ in range(3):
            queue.put(Ticket("others", RequestContext(Lane.INTERACTIVE)), 0.0)
    queues[path[0]].put(Ticket("bulk", RequestContext(Lane.BULK)), 0.0)
    for context in range(4000):
        queue = queues[context % 4]
        (part,) = queue.take(1)
        served[part.ticket.context.lane] += 1
        if part.ticket.item == "others":
            queue.put(Ticket("others", RequestContext(Lane.INTERACTIVE)), 0.0)
        else:
            at += 1
            queues[path[at % len(path)]].put(Ticket("bulk", RequestContext(Lane.BULK)), 0.0)
    assert served[Lane.BULK] >= 0.05 * 4000 - 1


def test_who_is_away_earns_nothing_and_keeps_what_is_left():
    shares = LaneShares()
    shares.enter(Lane.BULK)
    for _ in range(30):
        shares.give(Lane.INTERACTIVE)
    shares.leave(Lane.BULK)
    for _ in range(1000):
        shares.give(Lane.INTERACTIVE)
    assert shares.owed(Lane.BULK) == 1


def test_what_a_lane_gets_anyhow_counts_for_its_share_and_never_against_it():
    shares = LaneShares()
    shares.enter(Lane.STANDARD)
    for _ in range(100):
        shares.give(Lane.STANDARD)
    assert shares.owed(Lane.STANDARD) == 0
    for _ in range(5):
        shares.give(Lane.INTERACTIVE)
    assert shares.owed(Lane.STANDARD) == 1


def test_no_lane_saves_up_without_end():
    shares = LaneShares()
    for lane in SHARES:
        shares.enter(lane)
    for _ in range(10_000):
        shares.give(Lane.INTERACTIVE)
    assert {shares.owed(lane) for lane in SHARES} == {100}


def test_a_permit_that_was_lent_is_not_paid_for_again():
    queue = Queue()
    queue.put(Ticket("bulk", RequestContext(Lane.BULK)), 0.0)
    for paid in [True] * 50 + [False] * 20:
        queue.put(Ticket("other", RequestContext(Lane.INTERACTIVE), paid=paid), 0.0)
        assert queue.take(1)[0].ticket.item == "other"
    queue.put(Ticket("other", RequestContext(Lane.INTERACTIVE)), 0.0)
    assert queue.take(1)[0].ticket.item == "bulk"
