"""Memory of a GPU, and host memory that it reads by itself.

All users share the context of the GPU that ONNX Runtime uses too (the primary one). What speaks to
CUDA is `driver`.
"""

from __future__ import annotations

import math
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from function.runtime.engine import NotOnDeviceError
from function.runtime.gpu.driver import at, check, driver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import DTypeLike, NDArray

    from function.runtime.gpu.driver import Driver

__all__ = ["CudaMemory", "DeviceMemory", "check", "pinned"]


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


def pinned(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Host memory that every GPU reads by itself; ordinary memory where that cannot be had."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    try:
        found = driver()
    except NotOnDeviceError:
        return np.empty(shape, dtype)
    context = found.retain(0)
    found.push(context)
    try:
        address = found.pin(max(size, 1))
    finally:
        found.pop()
    raw = at(address, max(size, 1))
    weakref.finalize(raw, _unpin, found, context, address)
    return np.frombuffer(raw, np.uint8, size).view(dtype).reshape(shape)


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
        with self.current():
            self._stream = self._driver.stream()

    @property
    def stream(self) -> int:
        """The stream of its copies."""
        return int(self._stream)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the device that of the calling thread while the body runs."""
        self._driver.push(self._context)
        try:
            yield
        finally:
            self._driver.pop()

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
        """Give everything back; a second call does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        with self.current():
            self._driver.end(self._stream)
            for address in self._held:
                self._driver.free(address)
            for address in self._pins:
                self._driver.unpin(address)


def _unpin(driver: Driver, context: Any, address: int) -> None:
    driver.push(context)
    try:
        driver.unpin(address)
    finally:
        driver.pop()
