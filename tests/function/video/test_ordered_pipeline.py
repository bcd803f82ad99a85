"""The line of frames in work: order, bounds, failures."""

from __future__ import annotations

import asyncio
import random
import threading
import time

import pytest

from function.video.ordered_pipeline import line


async def run(work, *args):
    return await asyncio.to_thread(work, *args)


class Things:
    """Gives numbers, and knows how many of them are on their way."""

    def __init__(self, count):
        self.left, self.on_way, self.most = iter(range(count)), 0, 0
        self.taken, self.busy, self.lock = [], [], threading.Lock()

    def look(self):
        thing = next(self.left, None)
        if thing is not None:
            with self.lock:
                self.on_way += 1
                self.most = max(self.most, self.on_way)
        return thing

    def change(self, thing):
        time.sleep(random.Random(thing).random() / 200)
        return thing * 10

    def take(self, thing):
        with self.lock:
            self.on_way -= 1
            self.taken.append(thing)


async def test_things_are_taken_in_the_order_in_which_they_came():
    things = Things(60)
    assert await line(run, things.look, things.change, things.take, 4) == 60
    assert things.taken == [10 * k for k in range(60)]


@pytest.mark.parametrize("ahead", [1, 3, 8])
async def test_never_more_than_so_many_are_on_their_way(ahead):
    things = Things(40)
    await line(run, things.look, things.change, things.take, ahead)
    assert things.most <= ahead
    assert things.most > ahead / 2


async def test_several_are_worked_on_at_once():
    together = threading.Barrier(3, timeout=10)
    things = Things(3)
    await line(run, things.look, lambda thing: together.wait() * 0 + thing, things.take, 4)
    assert things.taken == [0, 1, 2]


@pytest.mark.parametrize("step", ["look", "change", "take"])
async def test_the_first_failure_ends_it_and_nothing_further_begins(step):
    things = Things(1000)

    def fail(thing=None):
        number = things.look() if step == "look" else thing
        if number is not None and number >= 10:
            raise RuntimeError("no")
        return number

    steps = {"look": things.look, "change": lambda thing: thing, "take": things.take} | {step: fail}
    with pytest.raises(RuntimeError, match="no"):
        await line(run, steps["look"], steps["change"], steps["take"], 4)
    assert next(things.left) < 30


async def test_nothing_comes_of_nothing():
    things = Things(0)
    assert await line(run, things.look, things.change, things.take, 4) == 0
