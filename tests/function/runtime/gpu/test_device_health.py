"""A GPU with a broken context is never used again by this process."""

from __future__ import annotations

import re

import numpy as np
import pytest

from function.runtime.gpu.cuda_errors import LOST as LOST_NUMBERS
from function.runtime.gpu.device_health import (
    DeviceHealth,
    DeviceLostError,
    GuardedEngine,
    is_lost,
    loss,
)
from function.runtime.out_of_memory import is_out_of_memory

LOST = [
    "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered",
    "CUDA error 700: an illegal memory access was encountered",
    "CUDA failure 719: unspecified launch failure ; GPU=0",
    "CUDA failure 46: all CUDA-capable devices are busy or unavailable",
    "cuStreamSynchronize failed: CUDA_ERROR_LAUNCH_FAILED",
    "CUBLAS failure 1: CUBLAS_STATUS_NOT_INITIALIZED ; GPU=0",
    "CUDNN failure 5000: CUDNN_STATUS_EXECUTION_FAILED ; GPU=0",
    "device-side assert triggered",
    "CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered",
    "NVML: GPU is lost",
    "GPU has fallen off the bus",
    "CUDA failure 226: contained",
    "CUDA error 721 launching __myl_Move kernel",
    "cudaError 702: the launch timed out and was terminated",
    "cudaErrorMpsClientTerminated",
    "cudaErrorLaunchFailure: unspecified launch failure",
    "Cuda Runtime (an illegal memory access was encountered)",
    "cuStreamSynchronize failed: invalid program counter",
    "CUDA error 2 launching __myl_Move kernel; CUDA error 719 launching __myl_Move kernel",
    "CUDA failure 911: external device",
    f"the plan cannot be executed: {'CUDA error 2 launching a kernel; ' * 20}CUDA error 700",
]
FINE = [
    "CUDA failure 2: out of memory ; GPU=0",
    "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    "Failed to allocate memory for requested buffer of size 700",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDA error 2 launching __myl_Move kernel",
    "cudaErrorMemoryAllocation",
    "Got invalid dimensions for input: index 0 Got: 719 Expected: 1",
    "no plan",
    "CUDA failure 701: too many resources requested for launch",
    "CUDA_ERROR_UNKNOWN: unknown error",
    "CUDA error in 700 lines",
]
SHORT = [each for each in FINE if re.search("memory|ALLOC|error 2|cudaErrorMem", each)]


@pytest.mark.parametrize("said", LOST)
def test_what_tells_of_a_broken_context_is_known(said):
    assert is_lost(RuntimeError(said))
    assert not is_out_of_memory(RuntimeError(said))


@pytest.mark.parametrize("said", FINE)
def test_what_does_not_is_not_taken_for_it(said):
    assert not is_lost(RuntimeError(said))


@pytest.mark.parametrize("said", SHORT)
def test_what_tells_of_a_shortage_is_known(said):
    assert is_out_of_memory(RuntimeError(said))


def test_what_cuda_says_of_losses_is_what_its_header_says():
    result = pytest.importorskip("cuda.bindings.driver").CUresult
    names = {int(each): each.name.removeprefix("CUDA_ERROR_") for each in result}
    final = {int(each) for each in result if "terminated and relaunched" in _text(each)}
    assert final
    assert final <= LOST_NUMBERS.keys()
    assert {number: names[number] for number in LOST_NUMBERS} == LOST_NUMBERS


def _text(member):
    return " ".join((member.__doc__ or "").split())


def test_an_error_that_was_caused_by_a_loss_is_one():
    error = ValueError("the model cannot be checked")
    error.__cause__ = RuntimeError(LOST[0])
    assert is_lost(error)


def test_what_is_told_of_a_loss_begins_with_what_told_it():
    error = RuntimeError(f"{'words ' * 100} CUDA error 719 launching a kernel")
    assert "process (CUDA error 719: words" in str(loss(error))


class Engine:
    provider, items = "CUDAExecutionProvider", None

    def __init__(self):
        self.error, self.runs = None, 0

    def run(self, batch):
        self.runs += 1
        if self.error:
            raise self.error
        return [batch]


BATCH = np.zeros((1, 2), np.float32)


def test_once_it_is_lost_no_engine_is_run_again_and_it_is_told_once():
    health, lost = DeviceHealth(), []
    health.on_lost = lost.append
    first, second = Engine(), Engine()
    one, other = GuardedEngine(first, health), GuardedEngine(second, health)
    assert one.run(BATCH)
    first.error = RuntimeError(LOST[0])
    for engine in (one, one, other):
        with pytest.raises(DeviceLostError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
            engine.run(BATCH)
    assert (first.runs, second.runs) == (2, 0)
    assert len(lost) == 1


def test_other_failures_are_only_those_of_their_batch():
    engine = Engine()
    guarded = GuardedEngine(engine, DeviceHealth())
    engine.error = RuntimeError(FINE[0])
    with pytest.raises(RuntimeError, match="out of memory"):
        guarded.run(BATCH)
    engine.error = None
    assert guarded.run(BATCH)


def test_it_is_the_engine_in_all_else():
    engine = Engine()
    guarded = GuardedEngine(engine, DeviceHealth())
    assert (guarded.provider, guarded.items, guarded.width) == (engine.provider, None, 1)
    engine.width = 3
    assert guarded.width == 3
