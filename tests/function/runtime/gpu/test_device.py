"""What knows CUDA: without a driver there is a clear error; with one, memory is what was put in.

The order of calls is tested with a driver that only notes them, as there is no GPU everywhere; what
they do is tested where there is one (`gpu`).
"""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from function.runtime.engine import NotOnDeviceError
from function.runtime.gpu import device
from function.runtime.gpu import driver as driver_module
from function.runtime.gpu.device import CudaMemory


@pytest.fixture(autouse=True)
def anew():
    driver_module._driver.cache_clear()
    yield
    driver_module._driver.cache_clear()


@pytest.fixture
def no_gpu():
    try:
        driver_module.driver()
    except NotOnDeviceError:
        return
    pytest.skip("is about machines without a GPU")


@pytest.mark.usefixtures("no_gpu")
def test_without_a_driver_what_to_do_is_said():
    with pytest.raises(NotOnDeviceError, match=r"no NVIDIA driver can be used.*install it on the"):
        device.check(0)


def test_without_anything_that_speaks_to_it_what_to_install_is_said(monkeypatch):
    for name in ("pycuda", "pycuda.driver", "cuda", "cuda.bindings"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotOnDeviceError, match="pip install cuda-bindings"):
        driver_module.driver()


@pytest.mark.usefixtures("no_gpu")
def test_without_a_driver_pinned_memory_is_ordinary_memory():
    array = device.pinned((2, 3), np.float16)
    array[...] = 4
    assert array.shape == (2, 3)
    assert array.dtype == np.float16


class Noting:
    """A `Driver` that notes its calls, and in which context each was made."""

    def __init__(self, count=1):
        self.number, self.calls, self.stack = count, [], threading.local()

    def count(self):
        return self.number

    def retain(self, number):
        return f"context {number}"

    def push(self, context):
        self.stack.__dict__.setdefault("contexts", []).append(context)

    def pop(self):
        self.stack.contexts.pop()

    def note(self, *call):
        assert self.stack.__dict__.get("contexts"), f"{call} without a context"
        self.calls.append((*call, self.stack.contexts[-1]))

    def stream(self):
        self.note("stream")
        return 77

    def wait(self, stream):
        self.note("wait", stream)

    def end(self, stream):
        self.note("end", stream)

    def allocate(self, size):
        self.note("allocate", size)
        return 1000 + len(self.calls)

    def free(self, address):
        self.note("free", address)

    def pin(self, size):
        self.note("pin", size)
        self.room = np.zeros(size, np.uint8)
        return self.room.ctypes.data

    def unpin(self, address):
        self.note("unpin", address)

    def upload(self, address, source, size, stream):
        self.note("upload", address, size, stream)

    def download(self, target, address, size, stream):
        self.note("download", address, size, stream)


@pytest.fixture
def driver(monkeypatch):
    noting = Noting(2)
    monkeypatch.setattr(driver_module, "_with_bindings", lambda: noting)
    return noting


def test_every_call_is_made_in_the_context_of_its_gpu(driver):
    memory = CudaMemory(1)
    with memory.current():
        address, pinned = memory.allocate(100), memory.pinned(100)
        memory.upload(address, pinned)
        memory.download(pinned, address)
        memory.wait()
    memory.close()
    assert {context for *_, context in driver.calls} == {"context 1"}
    assert driver.stack.contexts == []
    assert [call[0] for call in driver.calls] == [
        *("stream", "allocate", "pin", "upload", "download", "wait"),
        *("wait", "end", "free", "unpin"),
    ]
    assert memory.stream == 77


def test_a_thread_has_the_context_only_while_it_needs_it(driver):
    memory, seen = CudaMemory(0), []

    def work():
        with memory.current():
            memory.wait()
        seen.append(list(driver.stack.contexts))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [[]]


def test_the_context_goes_also_when_something_fails(driver):
    memory = CudaMemory(0)
    with pytest.raises(ZeroDivisionError), memory.current():
        1 / 0  # noqa: B018
    assert driver.stack.contexts == []


def test_what_was_given_back_is_not_given_back_twice(driver):
    memory = CudaMemory(0)
    memory.close()
    before = len(driver.calls)
    memory.close()
    assert len(driver.calls) == before


def test_a_gpu_that_is_not_there_is_named(driver):
    with pytest.raises(NotOnDeviceError, match="no GPU 2: CUDA sees 2"):
        CudaMemory(2)


def test_a_driver_without_a_gpu_is_none(driver):
    driver.number = 0
    with pytest.raises(NotOnDeviceError, match="CUDA sees no GPU: see CUDA_VISIBLE_DEVICES"):
        driver_module.driver()


def missing():
    raise ModuleNotFoundError


@pytest.mark.parametrize(
    ("bindings", "pycuda", "taken"),
    [(True, True, "bindings"), (True, False, "bindings"), (False, True, "pycuda")],
)
def test_pycuda_is_taken_only_where_cuda_bindings_are_not(monkeypatch, bindings, pycuda, taken):
    made = {"bindings": Noting(1), "pycuda": Noting(1)}
    for name, here in (("bindings", bindings), ("pycuda", pycuda)):
        make = (lambda one=made[name]: one) if here else missing
        monkeypatch.setattr(driver_module, f"_with_{name}", make)
    assert driver_module.driver() is made[taken]


def test_a_driver_that_fails_is_reported_with_what_it_says(monkeypatch):
    def fail():
        raise RuntimeError("CUDA_ERROR_NO_DEVICE: no CUDA-capable device")

    monkeypatch.setattr(driver_module, "_with_bindings", fail)
    with pytest.raises(NotOnDeviceError, match="CUDA_ERROR_NO_DEVICE"):
        driver_module.driver()


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_what_goes_to_a_gpu_comes_back():
    memory = CudaMemory(0)
    with memory.current():
        there, back = memory.pinned(1 << 20), memory.pinned(1 << 20)
        there[:] = np.arange(1 << 20, dtype=np.uint8)
        address = memory.allocate(1 << 20)
        memory.upload(address, there)
        memory.download(back, address)
        memory.wait()
    np.testing.assert_array_equal(there, back)
    memory.close()


def test_the_calls_are_those_of_nvidias_bindings():
    cuda = pytest.importorskip("cuda.bindings.driver")
    source = Path(driver_module.__file__).read_text()
    names = set(re.findall(r"self\._cuda\.(cu\w+|CU\w+)", source))
    assert len(names) > 12
    assert [name for name in names if not hasattr(cuda, name)] == []
    assert int(cuda.CUstream_flags.CU_STREAM_NON_BLOCKING) == driver_module._NON_BLOCKING
    assert int(cuda.CUctx_flags.CU_CTX_SCHED_BLOCKING_SYNC) == driver_module._SLEEP
    assert int(cuda.CUresult.CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE) == driver_module._CONTEXT_ACTIVE
    assert hasattr(cuda.CUresult, "CUDA_SUCCESS")
