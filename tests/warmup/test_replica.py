"""A replica becomes ready by loading and warming, once, whoever asks; draining is for good."""

from __future__ import annotations

import asyncio

import pytest

from warmup.phase import Phase
from warmup.replica import Replica


class Thing:
    """Warmable that counts, and can be told to wait or to break."""

    def __init__(self) -> None:
        self.loads = self.warms = 0
        self.go = asyncio.Event()
        self.go.set()
        self.broken: Exception | None = None

    async def load(self) -> None:
        self.loads += 1
        await self.go.wait()

    async def warm(self) -> None:
        self.warms += 1
        await self.go.wait()
        if self.broken:
            raise self.broken


@pytest.fixture
async def thing() -> Thing:
    return Thing()


async def test_it_is_ready_only_after_load_and_warm(thing):
    seen: list[Phase] = []
    replica = Replica(thing, on_phase=seen.append)
    assert not replica.ready
    await replica.warm()
    assert replica.ready
    assert seen == [Phase.STARTING, Phase.LOADING, Phase.WARMING, Phase.READY]
    assert [step.phase for step in replica.steps] == seen


async def test_a_hundred_callers_share_one_warm_up(thing):
    thing.go.clear()
    replica = Replica(thing)
    callers = [asyncio.create_task(replica.warm()) for _ in range(100)]
    await asyncio.sleep(0)
    thing.go.set()
    await asyncio.gather(*callers)
    assert (thing.loads, thing.warms) == (1, 1)


async def test_a_caller_that_goes_away_does_not_stop_the_warm_up(thing):
    thing.go.clear()
    replica = Replica(thing)
    caller = asyncio.create_task(replica.warm())
    await asyncio.sleep(0)
    caller.cancel()
    thing.go.set()
    await replica.warm()
    assert replica.ready
    assert thing.loads == 1


async def test_force_warms_again_without_loading_again(thing):
    replica = Replica(thing)
    await replica.warm()
    await replica.warm()
    await replica.warm(force=True)
    assert (thing.loads, thing.warms) == (1, 2)
    assert replica.ready


async def test_a_failed_warm_up_is_reported_and_not_ready(thing):
    thing.broken = ValueError("black image")
    replica = Replica(thing)
    with pytest.raises(ValueError, match="black image"):
        await replica.warm()
    assert replica.phase is Phase.FAILED
    assert replica.last_error == "ValueError: black image"


async def test_draining_during_the_warm_up_is_never_undone(thing):
    thing.go.clear()
    replica = Replica(thing)
    warming = asyncio.create_task(replica.warm())
    await asyncio.sleep(0.01)
    replica.drain()
    thing.go.set()
    await warming
    assert replica.phase is Phase.DRAINING
    assert not replica.ready


async def test_drain_is_idempotent(thing):
    replica = Replica(thing)
    await replica.warm()
    replica.drain()
    replica.drain()
    assert [step.phase for step in replica.steps].count(Phase.DRAINING) == 1
