"""Places bound what is in work; the urgent have theirs soon, and none is ever lost."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from function.problems import Problem
from function.request_context import Lane, RequestContext
from function.runtime.scheduling.lane_shares import LaneShares
from function.runtime.scheduling.slots import RequestSlots


@pytest.fixture
def places():
    return RequestSlots(2, extra=1)


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


async def waiting(places, order, name, context):
    """A task that waits for a place and writes down when it has it."""

    async def wait():
        await places.acquire(context)
        order.append(name)

    task = asyncio.create_task(wait())
    await settled()
    return task


async def test_who_finds_a_free_place_has_it_at_once(places):
    assert await places.acquire(RequestContext()) < 1
    assert places.held == 1
    places.release(RequestContext())
    assert places.held == 0


async def test_no_more_are_in_work_than_there_are_places(places):
    order = []
    for number in range(4):
        await waiting(places, order, number, RequestContext())
    assert (order, places.held, places.waiting(Lane.STANDARD)) == ([0, 1], 2, 2)
    places.release(RequestContext())
    await settled()
    assert (order, places.held, places.waiting(Lane.STANDARD)) == ([0, 1, 2], 2, 1)


async def test_the_most_urgent_and_then_the_earliest_deadline_is_next(places):
    order, soon = [], time.monotonic() + 30
    for _ in range(2):
        await places.acquire(RequestContext(Lane.INTERACTIVE))
    await waiting(places, order, "bulk", RequestContext(Lane.BULK))
    await waiting(places, order, "standard", RequestContext())
    await waiting(places, order, "soon", RequestContext(deadline=soon))
    await waiting(places, order, "interactive", RequestContext(Lane.INTERACTIVE))
    for _ in range(4):
        places.release(RequestContext(Lane.INTERACTIVE))
        await settled()
    assert order == ["interactive", "soon", "standard", "bulk"]


async def test_where_others_hold_the_places_there_is_one_more_for_the_interactive_lane(places):
    order = []
    for _ in range(2):
        await places.acquire(RequestContext(Lane.BULK))
    await waiting(places, order, "standard", RequestContext())
    for number in range(2):
        await waiting(places, order, number, RequestContext(Lane.INTERACTIVE))
    assert (order, places.held) == ([0], 3)
    places.release(RequestContext(Lane.INTERACTIVE))
    await settled()
    assert (order, places.held) == ([0, 1], 3)


async def test_where_all_are_interactive_there_is_none_more(places):
    order = []
    for number in range(5):
        await waiting(places, order, number, RequestContext(Lane.INTERACTIVE))
    assert (order, places.held) == ([0, 1], 2)


async def test_a_lane_that_is_behind_its_share_has_a_place_however_many_are_more_urgent():
    """And no more than its share of all of them, so that it keeps nobody else out."""
    shares, order = LaneShares(), []
    places = RequestSlots(4, 2, shares)
    for _ in range(6):
        await waiting(places, order, "interactive", RequestContext(Lane.INTERACTIVE))
    for _ in range(3):
        await waiting(places, order, "bulk", RequestContext(Lane.BULK))
    for _ in range(40):  # others compute, while these have nothing to compute with
        shares.give(Lane.INTERACTIVE)
    await waiting(places, order, "bulk", RequestContext(Lane.BULK))
    assert order.count("bulk") == 1
    for _ in range(2):
        places.release(RequestContext(Lane.INTERACTIVE))
        await settled()
    assert (order.count("bulk"), order.count("interactive")) == (1, 6)


async def test_no_lane_has_more_than_the_common_places_and_the_extra_ones():
    shares, order = LaneShares(), []
    places = RequestSlots(4, 2, shares)
    for lane in reversed(Lane):
        for _ in range(8):
            await waiting(places, order, lane, RequestContext(lane))
    for _ in range(400):
        shares.give(Lane.INTERACTIVE)
        places.release(RequestContext(Lane.INTERACTIVE))
        await waiting(places, order, Lane.INTERACTIVE, RequestContext(Lane.INTERACTIVE))
        assert places.held <= 6
    assert order.count(Lane.STANDARD) >= 1


async def test_a_deadline_ends_the_wait(places):
    for _ in range(2):
        await places.acquire(RequestContext())
    with pytest.raises(Problem, match="no time left"):
        await places.acquire(RequestContext(deadline=time.monotonic() + 0.01))
    assert (places.held, places.waiting(Lane.STANDARD)) == (2, 0)


async def test_who_is_cancelled_leaves_the_queue(places):
    order = []
    for _ in range(2):
        await places.acquire(RequestContext())
    gone = await waiting(places, order, "gone", RequestContext())
    await waiting(places, order, "other", RequestContext())
    gone.cancel()
    await settled()
    assert places.waiting(Lane.STANDARD) == 1
    places.release(RequestContext())
    await settled()
    assert (order, places.held) == (["other"], 2)


async def test_who_is_cancelled_in_the_moment_of_getting_a_place_passes_it_on(places):
    order = []
    for _ in range(2):
        await places.acquire(RequestContext())
    gone = await waiting(places, order, "gone", RequestContext())
    await waiting(places, order, "other", RequestContext())
    places.release(RequestContext())
    gone.cancel()  # the place is its own already, but its task has not run yet
    await settled()
    assert (order, places.held, gone.cancelled()) == (["other"], 2, True)


async def test_no_place_is_lost_whatever_is_cancelled(places):
    rng = random.Random(7)
    done = 0

    async def request():
        nonlocal done
        context = RequestContext(
            rng.choice(list(Lane)), time.monotonic() + rng.choice([0.001, 5.0, 9.0])
        )
        try:
            await places.acquire(context)
        except Problem:
            return
        try:
            assert places.held <= 3
            await asyncio.sleep(rng.choice([0, 0.0005]))
            done += 1
        finally:
            places.release(context)

    tasks = [asyncio.create_task(request()) for _ in range(400)]
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0.0003)
        rng.choice(tasks).cancel()
    assert (places.held, [places.waiting(lane) for lane in Lane]) == (0, [0] * 3)
    assert not any(places._held.values())
    assert done > 100
