"""Several GPUs are one engine: each runs a batch of its own, and none runs two."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from function.runtime.gpu.replicated import ReplicatedEngine


class Device:
    provider, items = "CUDAExecutionProvider", None

    def __init__(self, number, together=None, *, broken=False):
        self.number, self.together, self.broken = number, together, broken
        self.busy = threading.Lock()

    def run(self, batch):
        assert self.busy.acquire(blocking=False), "two batches at once on one device"
        try:
            if self.together:
                self.together.wait(10)
            if self.broken:
                raise RuntimeError("broken")
            return [np.full_like(batch, self.number)]
        finally:
            self.busy.release()


BATCH = np.zeros((1, 2), np.float32)


def test_as_many_batches_run_at_once_as_there_are_devices():
    together = threading.Barrier(3)
    several = ReplicatedEngine([Device(number, together) for number in range(3)])
    assert several.width == 3
    with ThreadPoolExecutor(3) as pool:
        found = [int(outputs[0][0, 0]) for outputs in pool.map(several.run, [BATCH] * 3)]
    assert sorted(found) == [0, 1, 2]


def test_who_comes_when_all_are_busy_waits_for_one():
    several = ReplicatedEngine([Device(0), Device(1)])
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(several.run, [BATCH] * 200))) == 200


def test_a_lone_caller_stays_on_the_device_that_is_warm():
    several = ReplicatedEngine([Device(0), Device(1)])
    assert {int(several.run(BATCH)[0][0, 0]) for _ in range(5)} == {0}


def test_a_device_is_free_again_after_a_failure():
    several = ReplicatedEngine([Device(0, broken=True)])
    for _ in range(3):
        with pytest.raises(RuntimeError, match="broken"):
            several.run(BATCH)
