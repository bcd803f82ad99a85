"""Slots bound what is in work; the urgent have theirs soon, and none is ever lost."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time

import pytest

from function.problems import Problem
from function.request_context import Lane, RequestContext
from function.runtime.scheduling.lane_shares import LaneShares
from function.runtime.scheduling.slots import RequestSlots


@pytest.fixture
def slots():
    return RequestSlots(2, extra=1)


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


class Granted(list):
    """The names of requests in the order in which they got slots, and these slots."""

    def __init__(self, slots):
        self._slots, self._held = slots, []

    async def hold(self, context, name=None):
        """Wait for a slot."""
        slot = await self._slots.acquire(context)
        self._held.append(slot)
        if name is not None:
            self.append(name)

    async def waiting(self, name, context):
        """A task that waits for a slot and writes down when it has it."""
        task = asyncio.create_task(self.hold(context, name))
        await settled()
        return task

    def end(self, lane):
        """End a request of a lane that holds a slot."""
        slot = next(slot for slot in self._held if slot.lane is lane)
        self._held.remove(slot)
        with slot:
            pass


@pytest.fixture
def granted(slots):
    return Granted(slots)


async def test_who_finds_a_free_slot_has_it_at_once(slots):
    with await slots.acquire(RequestContext()) as slot:
        assert slot.waited_s < 1
        assert slots.held == 1
    assert slots.held == 0


async def test_no_more_are_in_work_than_there_are_slots(slots, granted):
    for number in range(4):
        await granted.waiting(number, RequestContext())
    assert (granted, slots.held, slots.waiting(Lane.STANDARD)) == ([0, 1], 2, 2)
    granted.end(Lane.STANDARD)
    await settled()
    assert (granted, slots.held, slots.waiting(Lane.STANDARD)) == ([0, 1, 2], 2, 1)


async def test_the_most_urgent_and_then_the_earliest_deadline_is_next(slots, granted):
    soon = time.monotonic() + 30
    for _ in range(2):
        await granted.hold(RequestContext(Lane.INTERACTIVE))
    await granted.waiting("bulk", RequestContext(Lane.BULK))
    await granted.waiting("standard", RequestContext())
    await granted.waiting("soon", RequestContext(deadline=soon))
    await granted.waiting("interactive", RequestContext(Lane.INTERACTIVE))
    for lane in (*[Lane.INTERACTIVE] * 3, Lane.STANDARD):
        granted.end(lane)
        await settled()
    assert granted == ["interactive", "soon", "standard", "bulk"]


async def test_where_others_hold_the_slots_there_is_one_more_for_the_interactive_lane(
    slots, granted
):
    for _ in range(2):
        await granted.hold(RequestContext(Lane.BULK))
    await granted.waiting("standard", RequestContext())
    for number in range(2):
        await granted.waiting(number, RequestContext(Lane.INTERACTIVE))
    assert (granted, slots.held) == ([0], 3)
    granted.end(Lane.INTERACTIVE)
    await settled()
    assert (granted, slots.held) == ([0, 1], 3)


async def test_where_all_are_interactive_there_is_none_more(slots, granted):
    for number in range(5):
        await granted.waiting(number, RequestContext(Lane.INTERACTIVE))
    assert (granted, slots.held) == ([0, 1], 2)


async def test_a_lane_that_is_behind_its_share_has_a_slot_however_many_are_more_urgent():
    """And no more than its share of all of them, so that it keeps nobody else out."""
    shares = LaneShares()
    slots = RequestSlots(4, 2, shares)
    granted = Granted(slots)
    for _ in range(6):
        await granted.waiting("interactive", RequestContext(Lane.INTERACTIVE))
    for _ in range(3):
        await granted.waiting("bulk", RequestContext(Lane.BULK))
    for _ in range(40):  # others compute, while these have nothing to compute with
        shares.give(Lane.INTERACTIVE)
    await granted.waiting("bulk", RequestContext(Lane.BULK))
    assert granted.count("bulk") == 1
    for _ in range(2):
        granted.end(Lane.INTERACTIVE)
        await settled()
    assert (granted.count("bulk"), granted.count("interactive")) == (1, 6)


async def test_no_lane_has_more_than_the_common_slots_and_the_extra_ones():
    shares = LaneShares()
    slots = RequestSlots(4, 2, shares)
    granted = Granted(slots)
    for lane in reversed(Lane):
        for _ in range(8):
            await granted.waiting(lane, RequestContext(lane))
    for _ in range(400):
        shares.give(Lane.INTERACTIVE)
        granted.end(Lane.INTERACTIVE)
        await granted.waiting(Lane.INTERACTIVE, RequestContext(Lane.INTERACTIVE))
        assert slots.held <= 6
    assert granted.count(Lane.STANDARD) >= 1


async def test_a_deadline_ends_the_wait(slots, granted):
    for _ in range(2):
        await granted.hold(RequestContext())
    with pytest.raises(Problem, match="no time left"):
        await slots.acquire(RequestContext(deadline=time.monotonic() + 0.01))
    assert (slots.held, slots.waiting(Lane.STANDARD)) == (2, 0)


async def test_who_is_cancelled_leaves_the_queue(slots, granted):
    for _ in range(2):
        await granted.hold(RequestContext())
    gone = await granted.waiting("gone", RequestContext())
    await granted.waiting("other", RequestContext())
    gone.cancel()
    await settled()
    assert slots.waiting(Lane.STANDARD) == 1
    granted.end(Lane.STANDARD)
    await settled()
    assert (granted, slots.held) == (["other"], 2)


async def test_who_is_cancelled_in_the_moment_of_getting_a_slot_passes_it_on(slots, granted):
    for _ in range(2):
        await granted.hold(RequestContext())
    gone = await granted.waiting("gone", RequestContext())
    await granted.waiting("other", RequestContext())
    granted.end(Lane.STANDARD)
    gone.cancel()  # the slot is its own already, but its task has not run yet
    await settled()
    assert (granted, slots.held, gone.cancelled()) == (["other"], 2, True)


async def test_no_slot_is_lost_whatever_is_cancelled(slots):
    rng = random.Random(7)
    done = 0

    async def request():
        nonlocal done
        context = RequestContext(
            rng.choice(list(Lane)), time.monotonic() + rng.choice([0.001, 5.0, 9.0])
        )
        with contextlib.suppress(Problem), await slots.acquire(context):
            assert slots.held <= 3
            await asyncio.sleep(rng.choice([0, 0.0005]))
            done += 1

    tasks = [asyncio.create_task(request()) for _ in range(400)]
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0.0003)
        rng.choice(tasks).cancel()
    assert (slots.held, [slots.waiting(lane) for lane in Lane]) == (0, [0] * 3)
    assert done > 100
