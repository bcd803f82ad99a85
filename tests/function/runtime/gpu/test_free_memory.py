"""A start waits until the GPU has room, no longer than it may."""

from __future__ import annotations

import pytest

from function.runtime.gpu.free_memory import needed, wait
from tests.warmup.conftest import file_of, model_of
from tests.warmup.plans.nvml import Card
from warmup.plans.nvml import GpuMemory

GB = 10**9


class World:
    def __init__(self, *free):
        self.free, self.now = list(free), 0.0

    def look(self):
        free = self.free.pop(0) if len(self.free) > 1 else self.free[0]
        return None if free is None else GpuMemory(free * GB, 80 * GB)

    def sleep(self, seconds):
        self.now += seconds

    def wait(self, need, patience):
        return wait(need * GB, patience, look=self.look, clock=lambda: self.now, sleep=self.sleep)


def test_where_there_is_room_it_does_not_wait():
    world = World(10)
    assert world.wait(5, 60)
    assert world.now == 0


def test_it_goes_on_as_soon_as_there_is_room():
    world = World(1, 1, 4, 10)
    assert world.wait(5, 60)
    assert world.now == 1.5


def test_when_it_has_waited_long_enough_it_tries_regardless():
    world = World(1)
    assert not world.wait(5, 3)
    assert world.now == 3


def test_where_nobody_can_tell_it_does_not_wait():
    assert World(None).wait(5, 60)


def test_what_is_needed_grows_with_the_weights():
    small, large = (model_of(file_of(bytes(size), "")) for size in (1000, 500_000))
    assert needed([small, large]) - needed([small]) == 2 * 500_000
    assert needed([]) > 100 * 1000**2


@pytest.mark.parametrize(("free", "expected"), [(60, True), (0, False)])
def test_it_looks_at_the_gpu_that_is_used(cards, free, expected):
    cards(Card(0, free=free))
    assert wait(GB, 0) is expected
