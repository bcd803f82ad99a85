"""The queue is fair, orderly, and exact: nobody starves, and no row is lost or doubled."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function.request_context import SHARES, Lane, RequestContext
from function.runtime.scheduling.queue import Queue, Ticket

LANES = st.sampled_from(list(Lane))
DEADLINES = st.sampled_from([5.0, 7.0, 30.0, 59.0, math.inf])
ARRIVALS = st.lists(
    st.tuples(LANES, DEADLINES, st.integers(1, 9), st.sampled_from("ab")), min_size=1, max_size=40
)


def ticket(name, lane=Lane.STANDARD, deadline=math.inf, rows=1, kind=None, gone=False):
    return Ticket(name, RequestContext(lane, deadline, gone), rows, kind)


def filled(*tickets, now=0.0):
    queue = Queue()
    for each in tickets:
        queue.put(each, now)
    return queue


def drained(queue, room):
    """The batches until nothing is left, as (item, start, stop)."""
    while parts := queue.take(room):
        yield [(part.ticket.item, part.start, part.stop) for part in parts]


def names(queue, room=1):
    return [item for batch in drained(queue, room) for item, *_ in batch]


def test_an_empty_queue_gives_nothing():
    queue = Queue()
    assert (queue.take(8), queue.head(), queue.most_urgent(), len(queue)) == ([], None, None, 0)


def test_the_most_urgent_lane_goes_first():
    queue = filled(*(ticket(str(lane), lane) for lane in reversed(Lane)))
    assert queue.most_urgent() is Lane.INTERACTIVE
    assert names(queue) == ["interactive", "standard", "bulk"]


def test_in_a_lane_the_earliest_deadline_goes_first_and_equal_ones_as_they_came():
    queue = filled(
        ticket("c", deadline=9), ticket("a", deadline=3), ticket("d", deadline=9), ticket("e")
    )
    queue.put(ticket("b", deadline=3), 1.0)
    assert names(queue) == ["a", "b", "c", "d", "e"]


def test_who_has_no_deadline_is_not_overtaken_for_ever():
    queue = filled(ticket("patient"))
    for second in range(200):
        queue.put(ticket(second, deadline=second + 10.0), float(second))
    order = names(queue)
    assert order.index("patient") == 50  # those due within a minute of its arrival go first


def test_a_member_that_is_too_large_is_split_and_its_rest_comes_next():
    queue = filled(ticket("large", rows=10), ticket("small", rows=2))
    assert list(drained(queue, 4)) == [
        [("large", 0, 4)],
        [("large", 4, 8)],
        [("large", 8, 10), ("small", 0, 2)],
    ]


def test_rows_of_another_kind_wait_for_a_batch_of_their_own():
    queue = filled(
        ticket("a1", kind="a"),
        ticket("b1", kind="b"),
        ticket("a2", kind="a"),
        ticket("b2", kind="b"),
    )
    assert [[item for item, *_ in batch] for batch in drained(queue, 4)] == [
        ["a1", "a2"],
        ["b1", "b2"],
    ]


def test_purge_removes_and_returns_tickets_that_have_expired():
    queue = filled(
        ticket("gone", gone=True), ticket("late", deadline=4), ticket("good", deadline=9)
    )
    assert [each.item for each in queue.purge(4.0)] == ["gone", "late"]
    assert (names(queue), queue.purge(99.0)) == (["good"], [])


def test_a_ticket_that_leaves_is_not_taken_and_may_leave_twice():
    tickets = [ticket(name, rows=3) for name in "abc"]
    queue = filled(*tickets)
    queue.discard(tickets[1])
    queue.discard(tickets[1])
    assert (names(queue, 3), queue.waiting(Lane.STANDARD)) == (["a", "c"], 0)


def test_only_one_lane_may_be_asked():
    queue = filled(ticket("standard"), ticket("bulk", Lane.BULK))
    assert queue.take(1, Lane.INTERACTIVE) == []
    assert queue.take(1, Lane.BULK)[0].ticket.item == "bulk"


class TestDue:
    def test_a_batch_waits_for_its_window_from_the_first_who_came(self):
        queue = filled(ticket("a"), now=10.0)
        queue.put(ticket("b"), 10.5)
        assert queue.due(room=8, window=1.0) == 11.0

    def test_a_full_one_waits_for_nothing(self):
        queue = filled(ticket("a", rows=8), now=10.0)
        assert queue.due(room=8, window=1.0) == 0

    def test_rows_of_another_kind_do_not_make_it_full(self):
        queue = filled(ticket("a", kind="a"), ticket("b", rows=9, kind="b"), now=10.0)
        assert queue.due(room=8, window=1.0) == 11.0

    def test_interactive_work_waits_for_nothing(self):
        queue = filled(ticket("a"), ticket("b", Lane.INTERACTIVE), now=10.0)
        assert queue.due(room=8, window=1.0) == 0

    def test_no_deadline_is_missed_by_waiting(self):
        queue = filled(ticket("a", deadline=10.8), now=10.0)
        assert queue.due(room=8, window=1.0, cost=0.3) == pytest.approx(10.5)


@given(ARRIVALS, st.integers(1, 8))
def test_every_row_is_taken_exactly_once_and_batches_are_full_and_of_one_kind(arrivals, room):
    tickets = [ticket(n, *arrival) for n, arrival in enumerate(arrivals)]
    queue = filled(*tickets)
    taken = Counter()
    while True:
        left = {each: each.left for each in tickets if each.left}
        parts = queue.take(room)
        if not parts:
            break
        (kind,) = {part.ticket.kind for part in parts}
        could = sum(rows for each, rows in left.items() if each.kind == kind)
        assert sum(part.stop - part.start for part in parts) == min(room, could)
        for part in parts:
            taken.update((part.ticket.item, row) for row in range(part.start, part.stop))
    assert taken == Counter((each.item, row) for each in tickets for row in range(each.rows))
    assert (len(queue), [queue.waiting(lane) for lane in Lane]) == (0, [0, 0, 0])


@given(ARRIVALS, st.integers(1, 8))
def test_in_a_lane_nobody_is_overtaken_by_a_later_deadline_of_its_kind(arrivals, room):
    queue = filled(*(ticket(n, *arrival) for n, arrival in enumerate(arrivals)))
    order = {}
    for batch in drained(queue, room):
        for item, *_ in batch:
            order.setdefault(item, len(order))
    for lane in Lane:
        for kind in "ab":
            keys = [
                (min(deadline, 60.0), n)
                for n, (its, deadline, _, kinds) in enumerate(arrivals)
                if (its, kinds) == (lane, kind)
            ]
            assert sorted(keys) == sorted(keys, key=lambda key: order[key[1]])


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=5),
    st.lists(st.integers(1, 12), min_size=1, max_size=5),
    st.lists(st.integers(1, 12), min_size=1, max_size=5),
    st.integers(1, 16),
)
@settings(max_examples=50, deadline=None)
def test_under_saturation_every_lane_has_its_share(interactive, standard, bulk, room):
    sizes = dict(zip(Lane, (interactive, standard, bulk), strict=True))
    queue, taken, put = Queue(), Counter(), Counter()

    def top_up():
        for lane in Lane:
            while queue.waiting(lane) < 2 * room + 12:
                rows = sizes[lane][put[lane] % len(sizes[lane])]
                queue.put(ticket(None, lane, rows=rows), 0.0)
                put[lane] += 1

    total = 0
    while total < 500:
        top_up()
        for part in queue.take(room):
            taken[part.ticket.context.lane] += part.stop - part.start
        total = taken.total()
        for lane, share in SHARES.items():  # at any time, not only in the end
            assert taken[lane] >= total * share / 100 - room - 2
    assert taken[Lane.INTERACTIVE] >= total * 0.75 - room


@given(st.lists(st.booleans(), max_size=100))
def test_what_a_lane_did_not_need_it_does_not_get_later(bulk_waits):
    """However long bulk was idle, once it comes it does not push everyone else back."""
    queue = Queue()
    for waits in bulk_waits:
        queue.put(ticket("other", Lane.INTERACTIVE), 0.0)
        if waits:
            queue.put(ticket("bulk", Lane.BULK), 0.0)
            queue.take(2)
        queue.take(2)
    for _ in range(100):
        queue.put(ticket("bulk", Lane.BULK), 0.0)
        queue.put(ticket("other", Lane.INTERACTIVE), 0.0)
    assert names(queue)[:100].count("bulk") in (4, 5, 6)


def test_a_million_items_leave_no_trace():
    """Neither rows nor shares drift, and nothing piles up inside."""
    queue, clock, taken = Queue(), 0.0, Counter()
    lanes = list(Lane)
    for number in range(125_000):
        clock += 0.001
        for lane in lanes:
            deadline = clock + (number % 7) if number % 3 else math.inf
            queue.put(ticket(number, lane, deadline, rows=1 + number % 5, kind=number % 2), clock)
        while len(queue) > 30:
            for part in queue.take(8):
                taken[part.ticket.context.lane] += part.stop - part.start
    rows = 3 * sum(1 + number % 5 for number in range(125_000))
    assert rows > 1_000_000
    left = sum(queue.waiting(lane) for lane in lanes)
    assert taken.total() + left == rows
    assert sum(part[2] - part[1] for batch in drained(queue, 8) for part in batch) == left
    assert not queue._waiting
    assert not queue._kinds
    assert not any(queue._rows.values())
    assert not any(queue.shares._in_flight.values())
    assert all(queue.shares.owed(lane) <= 100 for lane in lanes)
    for lane in lanes:
        queue.head(lane)
    assert not any(queue._heaps.values())
