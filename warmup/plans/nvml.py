"""The GPUs that this process can see, as NVIDIA's management library (NVML) tells of them.

NVML comes with the driver; the package nvidia-ml-py, which speaks to it, is imported when somebody
asks. Neither needs CUDA, but a container has them only if it has a GPU: an init container does not.
CUDA counts GPUs in the order of NVML where CUDA_DEVICE_ORDER is PCI_BUS_ID, which
`function.runtime.gpu.device` sees to.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from warmup.failures import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator


class GpuMemory(NamedTuple):
    """Memory in bytes: what is free of how much."""

    free: int
    total: int


class Vitals(NamedTuple):
    """How a GPU is; NaN for what it does not tell, as a slice of one does not tell its share.

    Attributes:
        used, total: bytes of memory, of all processes.
        mine: bytes that this process holds.
        utilisation: the part of the last moment in which it computed, from 0 to 1.
        celsius: its temperature.
    """

    used: float
    total: float
    mine: float
    utilisation: float
    celsius: float


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, or one slice of a GPU (MIG), which programs use like one.

    Attributes:
        uuid: "GPU-…" or "MIG-…".
        name: of the product; a slice has its size in it.
        sm: compute capability, e.g. "9.0".
        driver: version of the driver, e.g. "580.65.06".
        cuda: the newest CUDA that the driver serves, e.g. "13.0".
        mig: whether it is a slice.
    """

    uuid: str
    name: str
    sm: str
    driver: str
    cuda: str
    mig: bool = False

    def memory(self) -> GpuMemory | None:
        """Its memory; None when it does not tell."""
        nvml = _nvml()
        try:
            found = nvml.nvmlDeviceGetMemoryInfo(_handle(self.uuid))
        except _errors(nvml):
            return None
        return GpuMemory(int(found.free), int(found.total))

    def vitals(self) -> Vitals:
        """How it is now."""
        nvml, uuid, sensor = _nvml(), self.uuid, _nvml().NVML_TEMPERATURE_GPU
        memory = self.memory()
        mine = _told(lambda: _of(nvml.nvmlDeviceGetComputeRunningProcesses(_handle(uuid))))
        busy = _told(lambda: nvml.nvmlDeviceGetUtilizationRates(_handle(uuid)).gpu / 100)
        celsius = _told(
            lambda: nvml.nvmlDeviceGetTemperature(_whole(nvml, _handle(uuid), mig=self.mig), sensor)
        )
        if memory is None:
            return Vitals(math.nan, math.nan, mine, busy, celsius)
        return Vitals(memory.total - memory.free, memory.total, mine, busy, celsius)


def visible() -> tuple[Gpu, ...]:
    """The GPUs that CUDA lets this process use, in its order.

    CUDA_VISIBLE_DEVICES counts; of GPUs that are cut into slices a process can use one slice, the
    first.

    Raises:
        UnavailableError: NVML, or the package that speaks to it, is not there, or it fails.
    """
    nvml = _nvml()
    try:
        return tuple(_seen(nvml))
    except _errors(nvml) as error:
        raise UnavailableError(f"the GPUs cannot be listed: {error}") from error


def first() -> Gpu:
    """The GPU that CUDA counts as its first.

    Raises:
        UnavailableError: there is none, or nobody can tell.
    """
    found = visible()
    if not found:
        raise UnavailableError("there is no GPU, or CUDA_VISIBLE_DEVICES hides it")
    return found[0]


def memory() -> GpuMemory | None:
    """The memory of the first GPU; None when nobody can tell."""
    try:
        return first().memory()
    except UnavailableError:
        return None


def _seen(nvml: Any) -> Iterator[Gpu]:
    handles = list(_chosen(nvml))
    slices = [part for handle in handles for part in _slices(nvml, handle)]
    for handle, mig in slices[:1] or [(handle, False) for handle in handles]:
        whole = _whole(nvml, handle, mig=mig)
        cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
        yield Gpu(
            uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
            name=_text(nvml.nvmlDeviceGetName(handle)),
            sm="{}.{}".format(*nvml.nvmlDeviceGetCudaComputeCapability(whole)),
            driver=_text(nvml.nvmlSystemGetDriverVersion()),
            cuda=f"{cuda // 1000}.{cuda % 1000 // 10}",
            mig=mig,
        )


def _whole(nvml: Any, handle: Any, *, mig: bool) -> Any:
    """The GPU that a slice is of, or that is one itself."""
    return nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle) if mig else handle


def _chosen(nvml: Any) -> Iterator[Any]:
    """The handles that CUDA_VISIBLE_DEVICES names, up to the first that names nothing."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        yield from map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
        return
    for word in given.split(","):
        name = word.strip()
        try:
            if name.isdecimal():
                yield nvml.nvmlDeviceGetHandleByIndex(int(name))
            else:
                yield nvml.nvmlDeviceGetHandleByUUID(_full(nvml, name))
        except _errors(nvml):
            return


def _full(nvml: Any, name: str) -> str:
    """The UUID of a GPU, of which CUDA also takes the beginning where that is of one only."""
    count = nvml.nvmlDeviceGetCount() if name.startswith("GPU-") else 0
    handles = map(nvml.nvmlDeviceGetHandleByIndex, range(count))
    every = [_text(nvml.nvmlDeviceGetUUID(each)) for each in handles]
    found = [each for each in every if each.startswith(name)]
    return found[0] if len(found) == 1 else name


def _slices(nvml: Any, handle: Any) -> Iterator[tuple[Any, bool]]:
    """The slices of a GPU, or the slice that the handle is."""
    if _text(nvml.nvmlDeviceGetUUID(handle)).startswith("MIG-"):
        yield handle, True
        return
    try:
        enabled, _ = nvml.nvmlDeviceGetMigMode(handle)
    except _errors(nvml):  # one that cannot be cut
        return
    if enabled:
        for number in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number), True
            except _errors(nvml):  # numbers may be free
                continue


@cache
def _nvml() -> Any:
    """The library, ready for use."""
    try:
        import pynvml
    except ImportError:
        raise UnavailableError(
            "GPUs cannot be asked about without nvidia-ml-py: pip install nvidia-ml-py"
        ) from None
    try:
        pynvml.nvmlInit()
    except _errors(pynvml) as error:
        raise UnavailableError(
            f"there is no NVIDIA driver here, or no GPU that this process may use: {error}"
        ) from error
    return pynvml


def _errors(nvml: Any) -> tuple[type[Exception], ...]:
    """What the package raises; newer ones the second, where the driver's NVML is too old."""
    return nvml.NVMLError, getattr(nvml, "NVMLLibraryMismatchError", nvml.NVMLError)


@cache
def _handle(uuid: str) -> Any:
    return _nvml().nvmlDeviceGetHandleByUUID(uuid)


def _told(read: Any) -> float:
    """A number, or NaN when the GPU does not tell it."""
    try:
        return float(read())
    except _errors(_nvml()):
        return math.nan


def _of(processes: Any) -> float:
    """The bytes that this process holds."""
    own = [each.usedGpuMemory for each in processes if each.pid == os.getpid()]
    if not own and len(processes) == 1:  # in a container its number is the host's
        own = [each.usedGpuMemory for each in processes]
    return sum(own) if own and None not in own else math.nan


def _text(value: Any) -> str:
    """Some versions of the package give bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)
