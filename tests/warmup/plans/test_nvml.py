"""Which GPUs a process uses, and what they tell; a stand-in for NVML says what is there."""

from __future__ import annotations

import math
import os
import sys

import pytest

from tests.warmup.plans.nvml import Card, process
from warmup.failures import UnavailableError
from warmup.plans import nvml

GB = 10**9


def uuids():
    return [each.uuid for each in nvml.visible()]


def test_what_a_gpu_is_goes_into_the_key_of_its_plans(cards):
    cards(Card(0), driver="580.65.06", cuda=13010)
    assert nvml.first() == nvml.Gpu("GPU-0", "NVIDIA H100", "9.0", "580.65.06", "13.1")


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, ["GPU-0", "GPU-1", "GPU-2"]),
        ("2,0", ["GPU-2", "GPU-0"]),
        ("GPU-1", ["GPU-1"]),
        (" 1 , 0 ", ["GPU-1", "GPU-0"]),
        ("1,-1,0", ["GPU-1"]),
        ("0,9,1", ["GPU-0"]),
        ("", []),
        ("-1", []),
        ("none", []),
    ],
)
def test_cudas_variable_chooses_and_its_first_mistake_ends_the_list(cards, visible, expected):
    cards(Card(0), Card(1), Card(2), visible=visible)
    assert uuids() == expected


def test_a_process_has_one_slice_of_gpus_that_are_cut(cards):
    cards(Card(0, slices=(0, 1)), Card(1, slices=(0,)))
    (found,) = nvml.visible()
    assert (found.uuid, found.mig, found.sm) == ("MIG-0-0", True, "9.0")
    assert found.name == "NVIDIA H100 MIG 1g.10gb"


def test_a_slice_can_be_named(cards):
    cards(Card(0, slices=(0, 1)), visible="MIG-0-1")
    assert uuids() == ["MIG-0-1"]


def test_a_gpu_that_cannot_be_cut_is_whole(cards):
    cards(Card(0, cuttable=False))
    assert not nvml.first().mig


def test_vitals_of_a_gpu(cards):
    card = Card(0, free=60)
    card.processes = [process(1, 5 * GB), process(os.getpid(), 2 * GB)]
    cards(card)
    assert nvml.first().vitals() == (20 * GB, 80 * GB, 2 * GB, 0.4, 61)


def test_vitals_of_a_slice_lack_what_nvml_tells_of_whole_gpus_only(cards):
    cards(Card(0, slices=(0,)))
    used, total, mine, utilisation, celsius = nvml.first().vitals()
    assert (used, total, celsius) == (1 * GB, 10 * GB, 61)
    assert math.isnan(mine)
    assert math.isnan(utilisation)


def test_vitals_lack_what_an_older_driver_cannot_tell(cards):
    cards(Card(0), old=True)
    used, total, mine, utilisation, celsius = nvml.first().vitals()
    assert (used, total, utilisation, celsius) == (20 * GB, 80 * GB, 0.4, 61)
    assert math.isnan(mine)


def test_of_a_gpu_that_is_lost_nothing_is_known(cards):
    library = cards(Card(0))
    lost = nvml.first()
    library.cards = []
    assert all(map(math.isnan, lost.vitals()))


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        ([process(1, 5)], 5),  # in a container the only one is ours, whatever its number
        ([process(1, 5), process(2, 6)], None),
        ([process(1, None)], None),
        ([], None),
    ],
)
def test_what_this_process_holds_is_told_only_where_it_is_known(cards, processes, expected):
    card = Card(0)
    card.processes = processes
    cards(card)
    mine = nvml.first().vitals().mine
    assert mine == expected if expected is not None else math.isnan(mine)


def test_without_a_gpu_that_is_said(cards):
    cards()
    with pytest.raises(UnavailableError, match="there is no GPU, or CUDA_VISIBLE_DEVICES hides it"):
        nvml.first()


def test_without_a_driver_that_is_said(cards):
    cards(broken=True)
    with pytest.raises(UnavailableError, match=r"no NVIDIA driver here.*Driver Not Loaded"):
        nvml.visible()


def test_without_the_package_what_to_install_is_said(cards, monkeypatch):
    cards()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(UnavailableError, match="pip install nvidia-ml-py"):
        nvml.visible()


@pytest.mark.gpu
def test_a_real_gpu_tells_the_same_kind_of_things(gpu):
    found = gpu.vitals()
    assert 0 < found.used <= found.total
    assert gpu.name
    assert 0 < found.celsius < 120
