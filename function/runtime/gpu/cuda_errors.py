"""What CUDA's errors mean to a process: the GPU is lost to it, or memory ran out, or neither.

The numbers and names are those of `CUresult` in cuda.h; since CUDA 10.1 its runtime has the same
numbers. Libraries give them in texts of their own, some of which hold several errors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Where cuda.h says that the process must be terminated and relaunched, that the context cannot be
# used any more, or that the device is gone.
LOST = {
    4: "DEINITIALIZED",
    46: "DEVICE_UNAVAILABLE",
    214: "ECC_UNCORRECTABLE",
    220: "NVLINK_UNCORRECTABLE",
    226: "CONTAINED",
    700: "ILLEGAL_ADDRESS",
    702: "LAUNCH_TIMEOUT",
    709: "CONTEXT_IS_DESTROYED",
    710: "ASSERT",
    714: "HARDWARE_STACK_ERROR",
    715: "ILLEGAL_INSTRUCTION",
    716: "MISALIGNED_ADDRESS",
    717: "INVALID_ADDRESS_SPACE",
    718: "INVALID_PC",
    719: "LAUNCH_FAILED",
    721: "TENSOR_MEMORY_LEAK",
    810: "MPS_CLIENT_TERMINATED",
    911: "EXTERNAL_DEVICE",
}
"""The errors after which nothing in the process can use the GPU, without CUDA_ERROR_."""

OUT_OF_MEMORY = 2

# The names that CUDA's runtime has for some of them, where they are not the same in camel case.
_OF_RUNTIME = {
    "cudartunloading": 4,
    "devicesunavailable": 46,
    "launchfailure": 719,
    "memoryallocation": OUT_OF_MEMORY,
}
_BY_NAME = (
    {name.replace("_", "").lower(): number for number, name in LOST.items()}
    | {"outofmemory": OUT_OF_MEMORY}
    | _OF_RUNTIME
)
_NAMED = re.compile(r"\bCUDA_ERROR_([A-Z_]+)|\bcudaError([A-Z][A-Za-z]+)")
_NUMBERED = re.compile(
    r"\bcuda ?(?:runtime |driver )?(?:error|failure)(?: code)?[ :=(#]*(\d{1,3})\b", re.IGNORECASE
)
# What the driver, cuBLAS, cuDNN and NVML say without a name or number of CUDA's.
_SAID = re.compile(
    r"illegal memory access|unspecified launch failure|device-side assert|misaligned address"
    r"|illegal instruction was encountered|invalid program counter|hardware stack error"
    r"|not supported on global/shared address space|launch timed out|context is destroyed"
    r"|tensor memory not completely freed|peer GPU memory over nvlink"
    r"|CUBLAS_STATUS_(?:NOT_INITIALIZED|EXECUTION_FAILED|MAPPING_ERROR)"
    r"|CUDNN_STATUS_(?:EXECUTION_FAILED|MAPPING_ERROR)"
    r"|uncorrectable (?:ECC|NVLink)|fallen off the bus|GPU is lost",
    re.IGNORECASE,
)


class CudaError(RuntimeError):
    """A call of CUDA's driver that failed.

    Attributes:
        number: of the error, as cuda.h has it; 999 for one that is not known.
    """

    def __init__(self, number: int, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.number = number


def lost_by(said: str) -> str | None:
    """What of a text tells that the GPU is lost; None where nothing does."""
    for number, word in _errors(said):
        if number in LOST:
            return word
    found = _SAID.search(said)
    return found and found[0]


def is_shortage(said: str) -> bool:
    """Whether a text tells that memory of the GPU ran out, and of nothing worse."""
    return lost_by(said) is None and any(n == OUT_OF_MEMORY for n, _ in _errors(said))


def _errors(said: str) -> Iterator[tuple[int | None, str]]:
    """The numbers of all errors that a text names, and how it names them."""
    for found in _NAMED.finditer(said):
        yield _BY_NAME.get((found[1] or found[2]).replace("_", "").lower()), found[0]
    for found in _NUMBERED.finditer(said):
        yield int(found[1]), found[0]
