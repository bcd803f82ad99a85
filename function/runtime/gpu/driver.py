"""CUDA's driver, through NVIDIA's own bindings or PyCUDA: the only module that knows CUDA.

cuda-bindings is taken where it is installed, PyCUDA where it alone is.

Nothing of CUDA is imported before it is asked for.
"""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import contextmanager
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from function.runtime.engine import NotOnDeviceError
from function.runtime.gpu.cuda_errors import LOST, OUT_OF_MEMORY, CudaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

# CUDA counts GPUs as NVML does. It reads this once, so it is set before any library can begin.
os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")

_SLEEP = 4
"""CU_CTX_SCHED_BLOCKING_SYNC: a thread that waits for the GPU sleeps; else it would spin."""
_NON_BLOCKING = 1
"""CU_STREAM_NON_BLOCKING: a stream that does not wait for the legacy stream, nor that for it."""
_CONTEXT_ACTIVE = 708
_UNKNOWN = 999
_NAMES = LOST | {OUT_OF_MEMORY: "OUT_OF_MEMORY", _UNKNOWN: "UNKNOWN"}


class Driver(Protocol):
    """What we need of CUDA's driver; each call but the first two works in the current context.

    Failures are `CudaError`.
    """

    @property
    def used(self) -> tuple[int, ...]:
        """The GPUs whose contexts were retained."""
        ...

    def count(self) -> int:
        """How many GPUs this process can see."""
        ...

    def retain(self, device: int) -> Any:
        """The primary context of a GPU, which is retained once and kept; waiting in it sleeps."""
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


def driver() -> Driver:
    """CUDA's driver, initialised; the same one for all threads.

    Raises:
        NotOnDeviceError: there is none, none that works, or nothing to speak to it with. Whoever
            goes on without it, to TensorRT, ends with a segmentation fault.
    """
    with _making:
        return _driver()


def is_used() -> bool:
    """Whether anybody has used the driver yet."""
    return bool(_driver.cache_info().currsize)


_making = threading.Lock()


@cache
def _driver() -> Driver:
    for make in (_with_bindings, _with_pycuda):
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
    raise NotOnDeviceError("CUDA's driver needs cuda-bindings: pip install cuda-bindings")


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


class _Contexts:
    """The primary contexts of the GPUs that are used, each retained once."""

    def __init__(self) -> None:
        self._contexts: dict[int, Any] = {}
        self._lock = threading.Lock()

    @property
    def used(self) -> tuple[int, ...]:
        return tuple(self._contexts)

    def retain(self, device: int) -> Any:
        with self._lock:
            if device not in self._contexts:
                self._contexts[device] = self._primary(device)
            return self._contexts[device]

    def _primary(self, device: int) -> Any:
        """Retain the primary context of a GPU."""
        raise NotImplementedError


class _Bindings(_Contexts):
    """`Driver` through `cuda.bindings.driver`; see there."""

    def __init__(self, cuda: Any) -> None:
        super().__init__()
        self._cuda = cuda
        self._do(cuda.cuInit(0))

    def count(self) -> int:
        return int(self._do(self._cuda.cuDeviceGetCount()))

    def _primary(self, device: int) -> Any:
        found = self._do(self._cuda.cuDeviceGet(device))
        try:
            self._do(self._cuda.cuDevicePrimaryCtxSetFlags(found, _SLEEP))
        except CudaError as error:
            if error.number != _CONTEXT_ACTIVE:  # somebody was first, and it stays as it is
                raise
        return self._do(self._cuda.cuDevicePrimaryCtxRetain(found))

    def push(self, context: Any) -> None:
        self._do(self._cuda.cuCtxPushCurrent(context))

    def pop(self) -> None:
        self._do(self._cuda.cuCtxPopCurrent())

    def stream(self) -> Any:
        return self._do(self._cuda.cuStreamCreate(_NON_BLOCKING))

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
            raise CudaError(int(status), status.name, said)
        return result[0] if result else None


class _Pycuda(_Contexts):
    """`Driver` through `pycuda.driver`; see there.

    Its exceptions have the driver's text for an error, but not the error; what it lacks is asked of
    the driver itself.
    """

    def __init__(self, cuda: Any) -> None:
        super().__init__()
        self._cuda = cuda
        self._pins: dict[int, Any] = {}
        self._blocks: dict[int, Any] = {}
        with self._errors():
            cuda.init()

    def count(self) -> int:
        with self._errors():
            return int(self._cuda.Device.count())

    def _primary(self, device: int) -> Any:
        with self._errors():
            found = self._cuda.Device(device)
            # It has no call for this. Where somebody was first it fails, and all stays as it is.
            self._libcuda.cuDevicePrimaryCtxSetFlags_v2(device, _SLEEP)
            return found.retain_primary_context()

    def push(self, context: Any) -> None:
        with self._errors():
            context.push()

    def pop(self) -> None:
        with self._errors():
            self._cuda.Context.pop()

    def stream(self) -> Any:
        with self._errors():
            return _PycudaStream(self._cuda.Stream(_NON_BLOCKING))

    def wait(self, stream: Any) -> None:
        with self._errors():
            stream.own.synchronize()

    def end(self, stream: Any) -> None:
        stream.own = None  # it ends with the object

    def allocate(self, size: int) -> int:
        with self._errors():
            block = self._cuda.mem_alloc(size)
        self._blocks[int(block)] = block
        return int(block)

    def free(self, address: int) -> None:
        with self._errors():
            self._blocks.pop(address).free()

    def pin(self, size: int) -> int:
        flags = self._cuda.host_alloc_flags.PORTABLE
        with self._errors():
            array = self._cuda.pagelocked_empty(size, np.uint8, mem_flags=flags)
        self._pins[array.ctypes.data] = array
        return int(array.ctypes.data)

    def unpin(self, address: int) -> None:
        with self._errors():
            self._pins.pop(address).base.free()

    def upload(self, address: int, source: int, size: int, stream: Any) -> None:
        with self._errors():
            held = np.frombuffer(at(source, size), np.uint8)
            self._cuda.memcpy_htod_async(address, held, stream.own)

    def download(self, target: int, address: int, size: int, stream: Any) -> None:
        with self._errors():
            held = np.frombuffer(at(target, size), np.uint8)
            self._cuda.memcpy_dtoh_async(held, address, stream.own)

    def _errors(self) -> AbstractContextManager[None]:
        return _translated(self._cuda.Error, self._texts)

    @cached_property
    def _libcuda(self) -> Any:
        return ctypes.CDLL("libcuda.so.1")

    @cached_property
    def _texts(self) -> dict[str, int]:
        """The number of each error by the driver's text for it."""
        found, text = dict[str, int](), ctypes.c_char_p()
        for number in range(1, 1000):
            if not self._libcuda.cuGetErrorString(number, ctypes.byref(text)) and text.value:
                found.setdefault(text.value.decode(), number)
        return found


@contextmanager
def _translated(kind: type[Exception], numbers: Mapping[str, int]) -> Iterator[None]:
    """Errors of PyCUDA ("cuMemAlloc failed: out of memory") as ours.

    Args:
        kind: the base of its errors.
        numbers: of errors, by text.
    """
    try:
        yield
    except kind as error:
        text = str(error).partition(" failed: ")[2].partition(" - ")[0]
        number = numbers.get(text, _UNKNOWN)
        raise CudaError(number, f"CUDA_ERROR_{_NAMES.get(number, number)}", str(error)) from error


class _PycudaStream:
    """A stream with its pointer as its `int()`, as with the other bindings."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def __int__(self) -> int:
        return int(self.own.handle)
