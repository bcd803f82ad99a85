"""An upgrade comes when the replica is ready, is tried again, and never ends readiness."""

from __future__ import annotations

import asyncio

import pytest

from warmup import upgrade
from warmup.phase import Phase
from warmup.replica import Replica
from warmup.retry import Retry

from .test_replica import Thing, until

QUICK = Retry(total_s=60, first_s=0.001, most_s=0.001)


class Lesser(Thing):
    def __init__(self) -> None:
        super().__init__()
        self.lesser = True
        self.tries = 0
        self.broken: Exception | None = None

    async def upgrade(self) -> None:
        self.tries += 1
        if self.broken:
            raise self.broken
        self.lesser = False


@pytest.fixture
async def thing():
    return Lesser()


@pytest.fixture
async def replica(thing):
    return Replica(thing)


@pytest.fixture
async def following():
    tasks = []

    def follow(*words):
        tasks.append(asyncio.create_task(upgrade.follow(*words)))
        return tasks[-1]

    yield follow
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_it_waits_until_the_replica_is_ready(thing, replica, following):
    task = following(thing, replica, QUICK)
    await asyncio.sleep(0.01)
    assert thing.tries == 0
    await replica.warm()
    await asyncio.wait_for(task, 10)
    assert (thing.tries, thing.lesser) == (1, False)


async def test_one_that_is_ready_already_is_upgraded_at_once(thing, replica, following):
    await replica.warm()
    await asyncio.wait_for(following(thing, replica, QUICK), 10)
    assert not thing.lesser


async def test_a_failure_is_tried_again_and_the_replica_stays_ready(thing, replica, following):
    await replica.warm()
    thing.broken = OSError("not there")
    task = following(thing, replica, QUICK)
    await until(lambda: thing.tries >= 3)
    assert replica.phase is Phase.READY
    assert replica.last_error is None
    thing.broken = None
    await asyncio.wait_for(task, 10)
    assert replica.phase is Phase.READY


async def test_where_the_pauses_end_the_lesser_stays(thing, replica, following):
    await replica.warm()
    thing.broken = OSError("not there")
    await asyncio.wait_for(following(thing, replica, Retry(total_s=0)), 10)
    assert (thing.tries, thing.lesser, replica.ready) == (1, True, True)
