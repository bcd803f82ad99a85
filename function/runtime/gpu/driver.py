"""CUDA's driver, through pycuda or NVIDIA's own bindings: the only module that knows CUDA.

Nothing of CUDA is imported before it is asked for.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any, Protocol

import numpy as np

from function.runtime.engine import NotOnDeviceError


class Driver(Protocol):
    """What we need of CUDA's driver; each call but the first two works in the current context.

    Failures are exceptions with the name of CUDA's error.
    """

    def count(self) -> int:
        """How many GPUs this process can see."""
        ...

    def retain(self, device: int) -> Any:
        """The primary context of a GPU."""
        ...

    def push(self, context: Any) -> None:
        """Make a context that of the calling thread."""
        ...

    def pop(self) -> None:
        """Undo the last `push` of the calling thread."""
        ...

    def stream(self) -> Any:
        """A new stream; `int()` of it is the pointer."""
        ...

    def wait(self, stream: Any) -> None:
        """Wait until a stream has done everything."""
        ...

    def end(self, stream: Any) -> None:
        """Destroy a stream."""
        ...

    def allocate(self, size: int) -> int:
        """The address of new memory on the device."""
        ...

    def free(self, address: int) -> None:
        """Give it back."""
        ...

    def pin(self, size: int) -> int:
        """The address of new host memory that every context can read."""
        ...

    def unpin(self, address: int) -> None:
        """Give it back."""
        ...

    def upload(self, address: int, source: int, size: int, stream: Any) -> None:
        """Copy from pinned host memory."""
        ...

    def download(self, target: int, address: int, size: int, stream: Any) -> None:
        """Copy to pinned host memory."""
        ...


@cache
def driver() -> Driver:
    """CUDA's driver, initialised.

    Raises:
        NotOnDeviceError: there is none, none that works, or nothing to speak to it with. Whoever
            goes on without it, to TensorRT, ends with a segmentation fault.
    """
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as NVML counts
    for make in (_with_pycuda, _with_bindings):
        try:
            found = make()
            count = found.count()
        except ModuleNotFoundError:
            continue
        except Exception as error:
            raise NotOnDeviceError(
                f"no NVIDIA driver can be used ({' '.join(str(error).split())}): install it on the"
                " host, and give the container a GPU (nvidia.com/gpu, or --gpus)"
            ) from error
        if not count:
            raise NotOnDeviceError("CUDA sees no GPU: see CUDA_VISIBLE_DEVICES")
        return found
    raise NotOnDeviceError(
        "CUDA's driver needs pycuda or cuda-bindings: pip install 'ember-function[tensorrt]'"
    )


def check(device: int) -> None:
    """See that the driver works and has a GPU of this number.

    Raises:
        NotOnDeviceError: it has not.
    """
    if device >= (count := driver().count()):
        raise NotOnDeviceError(f"there is no GPU {device}: CUDA sees {count}")


def at(address: int, size: int) -> Any:
    """The bytes at an address, as an object with a buffer."""
    return (ctypes.c_uint8 * size).from_address(address)


def _with_bindings() -> Driver:
    from cuda.bindings import driver as cuda

    return _Bindings(cuda)


def _with_pycuda() -> Driver:
    try:
        import pycuda.driver as cuda
    except ModuleNotFoundError:
        raise
    except ImportError as error:  # it is there, but libcuda is not
        raise RuntimeError(str(error)) from error
    return _Pycuda(cuda)


class _Bindings:
    """`Driver` through `cuda.bindings.driver`; see there."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._do(cuda.cuInit(0))

    def count(self) -> int:
        return int(self._do(self._cuda.cuDeviceGetCount()))

    def retain(self, device: int) -> Any:
        return self._do(
            self._cuda.cuDevicePrimaryCtxRetain(self._do(self._cuda.cuDeviceGet(device)))
        )

    def push(self, context: Any) -> None:
        self._do(self._cuda.cuCtxPushCurrent(context))

    def pop(self) -> None:
        self._do(self._cuda.cuCtxPopCurrent())

    def stream(self) -> Any:
        flags = self._cuda.CUstream_flags.CU_STREAM_NON_BLOCKING
        return self._do(self._cuda.cuStreamCreate(flags))

    def wait(self, stream: Any) -> None:
        self._do(self._cuda.cuStreamSynchronize(stream))

    def end(self, stream: Any) -> None:
        self._do(self._cuda.cuStreamDestroy(stream))

    def allocate(self, size: int) -> int:
        return int(self._do(self._cuda.cuMemAlloc(size)))

    def free(self, address: int) -> None:
        self._do(self._cuda.cuMemFree(address))

    def pin(self, size: int) -> int:
        return int(self._do(self._cuda.cuMemHostAlloc(size, self._cuda.CU_MEMHOSTALLOC_PORTABLE)))

    def unpin(self, address: int) -> None:
        self._do(self._cuda.cuMemFreeHost(address))

    def upload(self, address: int, source: int, size: int, stream: Any) -> None:
        self._do(self._cuda.cuMemcpyHtoDAsync(address, source, size, stream))

    def download(self, target: int, address: int, size: int, stream: Any) -> None:
        self._do(self._cuda.cuMemcpyDtoHAsync(target, address, size, stream))

    def _do(self, answer: tuple[Any, ...]) -> Any:
        """The result of a call, which comes behind its status."""
        status, *result = answer
        if status != self._cuda.CUresult.CUDA_SUCCESS:
            _, text = self._cuda.cuGetErrorString(status)
            said = text.decode() if isinstance(text, bytes) else str(text)
            raise RuntimeError(f"{status.name}: {said}")
        return result[0] if result else None


class _Pycuda:
    """`Driver` through `pycuda.driver`; see there."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._pins: dict[int, Any] = {}
        self._blocks: dict[int, Any] = {}
        cuda.init()

    def count(self) -> int:
        return int(self._cuda.Device.count())

    def retain(self, device: int) -> Any:
        return self._cuda.Device(device).retain_primary_context()

    def push(self, context: Any) -> None:
        context.push()

    def pop(self) -> None:
        self._cuda.Context.pop()

    def stream(self) -> Any:
        return _PycudaStream(self._cuda.Stream())

    def wait(self, stream: Any) -> None:
        stream.own.synchronize()

    def end(self, stream: Any) -> None:
        stream.own = None  # it ends with the object

    def allocate(self, size: int) -> int:
        block = self._cuda.mem_alloc(size)
        self._blocks[int(block)] = block
        return int(block)

    def free(self, address: int) -> None:
        self._blocks.pop(address).free()

    def pin(self, size: int) -> int:
        flags = self._cuda.host_alloc_flags.PORTABLE
        array = self._cuda.pagelocked_empty(size, np.uint8, mem_flags=flags)
        self._pins[array.ctypes.data] = array
        return int(array.ctypes.data)

    def unpin(self, address: int) -> None:
        self._pins.pop(address).base.free()

    def upload(self, address: int, source: int, size: int, stream: Any) -> None:
        self._cuda.memcpy_htod_async(address, np.frombuffer(at(source, size), np.uint8), stream.own)

    def download(self, target: int, address: int, size: int, stream: Any) -> None:
        self._cuda.memcpy_dtoh_async(np.frombuffer(at(target, size), np.uint8), address, stream.own)


class _PycudaStream:
    """A stream with its pointer as its `int()`, as with the other bindings."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def __int__(self) -> int:
        return int(self.own.handle)
