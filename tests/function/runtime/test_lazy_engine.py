"""A slot loads its model once, whoever asks, and tells how far it is."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from function.runtime.lazy_engine import LazyEngine, LoadState


class Echo:
    provider = "EchoProvider"
    items = None

    def run(self, batch):
        return [batch]


class Opening:
    """Opens when it may; counts, and fails as often as it is asked to."""

    def __init__(self):
        self.times = 0
        self.failures = 0
        self.go = threading.Event()
        self.go.set()

    def __call__(self):
        self.times += 1
        assert self.go.wait(20)
        if self.failures:
            self.failures -= 1
            raise OSError("no")
        return Echo()


@pytest.fixture
def opening():
    return Opening()


@pytest.fixture
async def slot(opening):
    with ThreadPoolExecutor(4) as pool:
        yield LazyEngine(opening, pool)


async def test_a_hundred_callers_load_once(slot, opening):
    opening.go.clear()
    callers = [asyncio.create_task(slot.load()) for _ in range(100)]
    await asyncio.sleep(0.01)
    assert slot.state is LoadState.LOADING
    opening.go.set()
    await asyncio.gather(*callers)
    await slot.load()
    assert opening.times == 1
    assert slot.state is LoadState.LOADED
    assert slot.load_s > 0


async def test_it_is_warmed_by_running(slot):
    await slot.load()
    batch = np.ones((1, 2), np.float32)
    assert slot.run(batch)[0] is batch
    assert slot.state is LoadState.WARMED


async def test_before_it_is_loaded_it_has_no_provider_and_does_not_run(slot):
    assert (slot.loaded, slot.provider, slot.load_s) == (False, "", None)
    assert slot.engine is slot.items is None
    with pytest.raises(RuntimeError, match="before it was loaded"):
        slot.run(np.ones((1, 2), np.float32))
    await slot.load()
    assert (slot.loaded, slot.provider) == (True, "EchoProvider")


async def test_all_who_wait_are_told_of_a_failure_and_the_next_tries_again(slot, opening):
    opening.failures = 1
    results = await asyncio.gather(*(slot.load() for _ in range(10)), return_exceptions=True)
    assert [str(result) for result in results] == ["no"] * 10
    assert (opening.times, slot.state, slot.loaded) == (1, LoadState.FAILED, False)
    await slot.load()
    assert (opening.times, slot.state) == (2, LoadState.LOADED)


async def test_callers_that_go_away_do_not_stop_it(slot, opening):
    opening.go.clear()
    caller = asyncio.create_task(slot.load())
    await asyncio.sleep(0.01)
    caller.cancel()
    opening.go.set()
    await slot.load()
    assert opening.times == 1


async def test_a_failure_that_nobody_waits_for_is_no_unhandled_error(slot, opening):
    opening.go.clear()
    opening.failures = 1
    caller = asyncio.create_task(slot.load())
    await asyncio.sleep(0.01)
    caller.cancel()
    unhandled = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    opening.go.set()
    while slot.state is not LoadState.FAILED:
        await asyncio.sleep(0.001)
    del caller
    await asyncio.sleep(0.01)
    assert unhandled == []
