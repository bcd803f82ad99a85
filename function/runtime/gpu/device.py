"""Memory of a GPU, and host memory that it reads by itself.

All users share the context of the GPU that ONNX Runtime uses too (the primary one). What speaks to
CUDA is `driver`.
"""

from __future__ import annotations

import logging
import math
import threading
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from function.runtime.engine import NotOnDeviceError
from function.runtime.gpu.cuda_errors import CudaError
from function.runtime.gpu.driver import at, check, driver, is_used

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import DTypeLike, NDArray

    from function.runtime.gpu.driver import Driver

__all__ = ["CudaMemory", "DeviceMemory", "check", "pinned", "prepare", "probe"]

log = logging.getLogger("ember.gpu")

_UNKNOWN = 999


class DeviceMemory(Protocol):
    """Memory of one device, one stream on it, and what goes between it and the host.

    All of it belongs to one user, who calls it inside `current`.
    """

    @property
    def stream(self) -> int:
        """The stream, as a pointer."""
        ...

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the device that of the calling thread while the body runs."""
        ...

    def pinned(self, size: int) -> NDArray[np.uint8]:
        """So many bytes of host memory that the device reads by itself, until `close`."""
        ...

    def allocate(self, size: int) -> int:
        """The address of so many bytes on the device, until `close`."""
        ...

    def upload(self, address: int, source: NDArray[np.uint8]) -> None:
        """Copy pinned memory to the device, when the stream comes to it."""
        ...

    def download(self, target: NDArray[np.uint8], address: int) -> None:
        """Copy from the device to pinned memory, when the stream comes to it."""
        ...

    def wait(self) -> None:
        """Wait until the stream has done everything."""
        ...

    def close(self) -> None:
        """Give all of it back."""
        ...


def pinned(shape: tuple[int, ...], dtype: DTypeLike, device: int = 0) -> NDArray[Any]:
    """Host memory that every GPU reads by itself; ordinary memory where that cannot be had.

    Args:
        shape: of the array.
        dtype: of its elements.
        device: the GPU that it is for, whose context is in use anyway.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    try:
        found = driver()
        context = found.retain(device)
        with _pushed(found, context):
            address = found.pin(max(size, 1))
    except Exception as error:  # what is wrong with a GPU shows when it is used
        log.debug("no pinned memory", extra={"reason": str(error)})
        return np.empty(shape, dtype)
    raw = at(address, max(size, 1))
    weakref.finalize(raw, _unpin, found, context, address)
    return np.frombuffer(raw, np.uint8, size).view(dtype).reshape(shape)


def prepare(device: int) -> None:
    """See to the context of a GPU before a library that brings its own runtime takes it.

    Raises:
        NotOnDeviceError: there is no such GPU. Where there is no driver the library will say so.
    """
    try:
        found = driver()
    except NotOnDeviceError:
        return
    check(device)
    found.retain(device)


def probe() -> None:
    """Copy a few bytes to each GPU that this process uses, and back.

    Raises:
        CudaError: what CUDA said; a GPU that is lost says it here at the latest.
    """
    for device in driver().used if is_used() else ():
        memory = CudaMemory(device)
        try:
            with memory.current():
                there, back = memory.pinned(8), memory.pinned(8)
                there[:], back[:] = 1, 0
                address = memory.allocate(8)
                memory.upload(address, there)
                memory.download(back, address)
                memory.wait()
            if not (there == back).all():
                raise CudaError(_UNKNOWN, "CUDA_ERROR_UNKNOWN", "a copy is not what was copied")
        finally:
            with suppress(CudaError):
                memory.close()


class CudaMemory:
    """Memory on one GPU, by the driver.

    Args:
        device: the number of the GPU, as CUDA counts those that this process can see.

    Raises:
        NotOnDeviceError: there is no such GPU, or no driver.
    """

    def __init__(self, device: int = 0) -> None:
        check(device)
        self._driver = driver()
        self._context = self._driver.retain(device)
        self._lock = threading.Lock()
        self._held: list[int] = []
        self._pins: list[int] = []
        self._closed = False
        self._stream: Any = None
        try:
            with self.current():
                self._stream = self._driver.stream()
        except CudaError:
            if self._stream is not None:
                with suppress(CudaError):
                    self.close()
            raise

    @property
    def stream(self) -> int:
        """The stream of its copies."""
        return int(self._stream)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the device that of the calling thread while the body runs."""
        with _pushed(self._driver, self._context):
            yield

    def pinned(self, size: int) -> NDArray[np.uint8]:
        """So many bytes of host memory that the device reads by itself, until `close`."""
        address = self._driver.pin(max(size, 1))
        self._pins.append(address)
        return np.frombuffer(at(address, max(size, 1)), np.uint8, size)

    def allocate(self, size: int) -> int:
        """The address of so many bytes on the device, until `close`."""
        address = self._driver.allocate(max(size, 1))
        self._held.append(address)
        return address

    def upload(self, address: int, source: NDArray[np.uint8]) -> None:
        """Copy pinned memory to the device, when the stream comes to it."""
        self._driver.upload(address, source.ctypes.data, source.nbytes, self._stream)

    def download(self, target: NDArray[np.uint8], address: int) -> None:
        """Copy from the device to pinned memory, when the stream comes to it."""
        self._driver.download(target.ctypes.data, address, target.nbytes, self._stream)

    def wait(self) -> None:
        """Wait until the stream has done everything."""
        self._driver.wait(self._stream)

    def close(self) -> None:
        """Give everything back; a second call does nothing.

        Raises:
            CudaError: the first thing that could not be given back; the others were tried.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
        driver, errors = self._driver, list[CudaError]()
        with self.current():
            for give, held in (
                (driver.wait, [self._stream]),
                (driver.end, [self._stream]),
                (driver.free, self._held),
                (driver.unpin, self._pins),
            ):
                for each in held:
                    try:
                        give(each)
                    except CudaError as error:
                        errors.append(error)
        if errors:
            raise errors[0]


@contextmanager
def _pushed(driver: Driver, context: Any) -> Iterator[None]:
    driver.push(context)
    try:
        yield
    finally:
        driver.pop()


def _unpin(driver: Driver, context: Any, address: int) -> None:
    with suppress(CudaError), _pushed(driver, context):  # of a GPU that is lost nothing comes back
        driver.unpin(address)
