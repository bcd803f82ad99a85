"""An idle replica beats; a busy, cold or unready one does not; a beat that fails ends readiness."""

from __future__ import annotations

import asyncio

import pytest

from warmup import heartbeat
from warmup.replica import Replica

from .test_replica import Thing, until

EVERY_S = 0.02


class Heart(Thing):
    def __init__(self) -> None:
        super().__init__()
        self.cold = False
        self.idle_s = 100.0
        self.beats = 0
        self.broken: Exception | None = None

    async def beat(self) -> None:
        self.beats += 1
        if self.broken:
            raise self.broken


@pytest.fixture
async def heart():
    return Heart()


@pytest.fixture
async def replica(heart):
    replica = Replica(heart)
    await replica.warm()
    return replica


@pytest.fixture
async def recorded(heart, replica):
    recorded = []
    task = asyncio.create_task(heartbeat.keep(heart, replica, EVERY_S, recorded.append))
    yield recorded
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_idle_replica_beats_again_and_again(heart, recorded):
    await until(lambda: len(recorded) >= 3)
    assert heart.beats >= 3
    assert all(seconds >= 0 for seconds in recorded)


@pytest.mark.parametrize("state", [{"idle_s": 0.0}, {"idle_s": EVERY_S / 2}, {"cold": True}])
async def test_a_busy_or_cold_replica_does_not(heart, recorded, state):
    for name, value in state.items():
        setattr(heart, name, value)
    heart.beats = 0
    await asyncio.sleep(10 * EVERY_S)
    assert heart.beats == 0


async def test_a_replica_that_drains_does_not(heart, replica, recorded):
    replica.drain()
    heart.beats = 0
    await asyncio.sleep(5 * EVERY_S)
    assert heart.beats == 0


async def test_a_beat_that_fails_ends_readiness_until_a_warm_up_succeeds(heart, replica, recorded):
    seen = []
    replica.listeners.append(lambda phase: seen.append((phase, replica.last_error)))
    heart.go.clear()
    heart.broken = RuntimeError("the device is gone")
    await until(lambda: None in recorded)
    assert not replica.ready
    assert replica.last_error == "RuntimeError: the device is gone"
    heart.broken = None
    heart.go.set()
    await until(lambda: replica.ready)
    await until(lambda: recorded[-1] is not None)
