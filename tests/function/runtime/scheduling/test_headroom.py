"""A larger batch is tried again when there is clearly more memory, and not before."""

from __future__ import annotations

import sys

import pytest

from function.runtime.scheduling import headroom
from function.runtime.scheduling.headroom import Comeback, reader
from tests.warmup.plans.nvml import Card
from warmup.plans.nvml import GpuMemory

GB = 10**9


def short(now=0.0, free=1 * GB):
    comeback = Comeback()
    comeback.fell(now, GpuMemory(free, 20 * GB))
    return comeback


def test_where_memory_was_never_short_nobody_looks():
    assert not Comeback().asks(1e9)


def test_a_larger_batch_comes_back_with_clearly_more_memory():
    assert short().allows(60.0, GpuMemory(2 * GB, 20 * GB))


@pytest.mark.parametrize(
    ("now", "found"),
    [(59.0, GpuMemory(9 * GB, 20 * GB)), (60.0, GpuMemory(1_900_000_000, 20 * GB)), (60.0, None)],
    ids=["too early", "hardly more", "nobody knows"],
)
def test_it_does_not_otherwise(now, found):
    assert not short().allows(now, found)


def test_one_size_a_minute():
    comeback = short()
    much = GpuMemory(9 * GB, 20 * GB)
    assert comeback.allows(60.0, much)
    assert not comeback.asks(61.0)
    assert comeback.allows(120.0, much)


def test_where_memory_cannot_be_known_a_limit_stays():
    comeback = Comeback()
    comeback.fell(0.0, None)
    assert not comeback.asks(1e9)


def test_on_the_cpu_it_is_the_containers(monkeypatch):
    read = reader("CPUExecutionProvider")
    monkeypatch.setattr(headroom.memory, "limit", lambda: None)
    assert read() is None
    monkeypatch.setattr(headroom.memory, "limit", lambda: 8 * GB)
    monkeypatch.setattr(headroom.memory, "held", lambda: 3 * GB)
    assert read() == GpuMemory(5 * GB, 8 * GB)
    monkeypatch.setattr(headroom.memory, "held", lambda: 9 * GB)
    assert read() == GpuMemory(0, 8 * GB)


def test_without_nvidias_library_nobody_knows(cards, monkeypatch):
    cards()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert reader("CUDAExecutionProvider")() is None


def test_on_a_gpu_it_is_that_of_the_first(cards):
    cards(Card(0, free=3), Card(1))
    assert reader("TensorRT")() == GpuMemory(3 * GB, 80 * GB)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_with_a_gpu_it_is_the_gpus():
    found = reader("CUDAExecutionProvider")()
    assert 0 < found.free <= found.total
