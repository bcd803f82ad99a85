"""The metrics of GPUs; a stand-in for NVML says what is there."""

from __future__ import annotations

import math
import os

import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from function.telemetry.gpu_metrics import GpuMetrics, fragmentation
from tests.warmup.plans.nvml import Card, process

LABELS = {
    "info": ("gpu", "name", "sm", "driver", "mig"),
    "memory": ("gpu", "kind"),
    "utilisation": ("gpu",),
    "celsius": ("gpu",),
    "fragmentation": ("gpu",),
}


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def gpus(registry):
    made = {name: Gauge(name, name, each, registry=registry) for name, each in LABELS.items()}
    return GpuMetrics(on=True, **made)


def text(registry):
    return generate_latest(registry).decode()


def test_all_that_nvml_tells_is_there(gpus, registry, cards):
    card = Card(0, free=60)
    card.processes = [process(os.getpid(), 2e9)]
    cards(card)
    gpus.read()
    for line in (
        'info{driver="580.65.06",gpu="GPU-0",mig="false",name="NVIDIA H100",sm="9.0"} 1.0',
        'memory{gpu="GPU-0",kind="used"} 2e+10',
        'memory{gpu="GPU-0",kind="mine"} 2e+09',
        'utilisation{gpu="GPU-0"} 0.4',
        'celsius{gpu="GPU-0"} 61.0',
        'fragmentation{gpu="GPU-0"} NaN',
    ):
        assert line in text(registry)


def test_what_is_held_more_than_at_the_start_is_fragmentation(gpus, registry, cards):
    card = Card(0)
    card.processes = [process(os.getpid(), 2e9)]
    cards(card)
    gpus.note()
    card.processes = [process(os.getpid(), 4e9)]
    gpus.note()  # ready once more: the start is the first time
    gpus.read()
    assert 'fragmentation{gpu="GPU-0"} 0.5' in text(registry)


@pytest.mark.parametrize(
    ("before", "now", "expected"), [(2, 2, 0), (2, 1, 0), (1, 4, 0.75), (math.nan, 4, math.nan)]
)
def test_fragmentation(before, now, expected):
    assert fragmentation(before, now) == pytest.approx(expected, nan_ok=True)


def test_where_nothing_is_held_nothing_is_known():
    assert math.isnan(fragmentation(1, 0))
    assert math.isnan(fragmentation(1, math.nan))


def test_without_a_gpu_there_is_nothing(gpus, registry, cards):
    cards(broken=True)
    gpus.note()
    gpus.read()
    assert "GPU" not in text(registry)


def test_where_no_backend_uses_a_gpu_none_is_asked(gpus, registry, cards):
    cards(Card(0))
    gpus.on = False
    gpus.read()
    assert "GPU-0" not in text(registry)
