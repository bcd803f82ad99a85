"""Frames in work: order, bounds, failures."""

from __future__ import annotations

import asyncio
import random
import threading
import time

import pytest

from function.video.ordered_pipeline import in_order


async def run(work, *args):
    return await asyncio.to_thread(work, *args)


class Numbers:
    """Gives numbers, and counts how many of them are in work."""

    def __init__(self, count):
        self.left, self.in_work, self.most = iter(range(count)), 0, 0
        self.written, self.busy, self.lock = [], [], threading.Lock()

    def read(self):
        thing = next(self.left, None)
        if thing is not None:
            with self.lock:
                self.in_work += 1
                self.most = max(self.most, self.in_work)
        return thing

    def change(self, thing):
        time.sleep(random.Random(thing).random() / 200)
        return thing * 10

    def write(self, thing):
        with self.lock:
            self.in_work -= 1
            self.written.append(thing)


async def test_things_are_written_in_the_order_in_which_they_were_read():
    numbers = Numbers(60)
    assert await in_order(run, numbers.read, numbers.change, numbers.write, 4) == 60
    assert numbers.written == [10 * k for k in range(60)]


@pytest.mark.parametrize("ahead", [1, 3, 8])
async def test_never_more_than_so_many_are_in_work(ahead):
    numbers = Numbers(40)
    await in_order(run, numbers.read, numbers.change, numbers.write, ahead)
    assert numbers.most <= ahead
    assert numbers.most > ahead / 2


async def test_several_are_worked_on_at_once():
    together = threading.Barrier(3, timeout=10)
    numbers = Numbers(3)
    await in_order(run, numbers.read, lambda thing: together.wait() * 0 + thing, numbers.write, 4)
    assert numbers.written == [0, 1, 2]


@pytest.mark.parametrize("step", ["read", "change", "write"])
async def test_after_the_first_failure_nothing_further_begins(step):
    numbers = Numbers(1000)

    def fail(thing=None):
        number = numbers.read() if step == "read" else thing
        if number is not None and number >= 10:
            raise RuntimeError("no")
        return number

    steps = {"read": numbers.read, "change": lambda thing: thing, "write": numbers.write}
    steps[step] = fail
    with pytest.raises(RuntimeError, match="no"):
        await in_order(run, steps["read"], steps["change"], steps["write"], 4)
    assert next(numbers.left) < 30


async def test_an_empty_clip_has_no_frames():
    numbers = Numbers(0)
    assert await in_order(run, numbers.read, numbers.change, numbers.write, 4) == 0
