"""A GPU with a broken context: nothing in this process can use it any more, a new one can."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warmup.failures import WarmupError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from function.runtime.engine import Engine

# What CUDA, cuBLAS, cuDNN and the driver say of it; CUDA's numbers are those of its runtime.
_SAID = re.compile(
    r"CUDA_ERROR_(ILLEGAL_ADDRESS|ILLEGAL_INSTRUCTION|INVALID_ADDRESS_SPACE|INVALID_PC"
    r"|LAUNCH_FAILED|LAUNCH_TIMEOUT|ASSERT|MISALIGNED_ADDRESS|HARDWARE_STACK_ERROR"
    r"|ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE|CONTEXT_IS_DESTROYED|DEINITIALIZED"
    r"|DEVICE_UNAVAILABLE)"
    r"|illegal memory access|unspecified launch failure|device-side assert|misaligned address"
    r"|CUBLAS_STATUS_(NOT_INITIALIZED|EXECUTION_FAILED|MAPPING_ERROR)"
    r"|CUDNN_STATUS_(EXECUTION_FAILED|MAPPING_ERROR)"
    r"|uncorrectable ECC|fallen off the bus|GPU is lost"
    r"|\bCUDA (failure|error):? (46|214|220|70[0129]|71[0-9])\b",
    re.IGNORECASE,
)


class DeviceLostError(WarmupError):
    """The GPU is lost to this process."""

    exit_code = 69
    final = True


def is_lost(error: BaseException) -> bool:
    """Whether an error means that; running out of memory does not."""
    return isinstance(error, DeviceLostError) or bool(_SAID.search(str(error)))


class DeviceHealth:
    """Whether the GPU of this process is lost; all engines share it, as they share the context.

    Attributes:
        error: what was said when it was lost; None as long as it is not.
        on_lost: called once, in any thread.
    """

    def __init__(self) -> None:
        self.error: DeviceLostError | None = None
        self.on_lost: Callable[[DeviceLostError], None] = lambda _: None

    def lose(self, error: Exception) -> DeviceLostError:
        """Note that the GPU is lost; gives what is to be raised."""
        if self.error is None:
            first = " ".join(str(error).split())[:200]
            self.error = DeviceLostError(f"the GPU is lost to this process ({first})")
            self.on_lost(self.error)
        return self.error


class GuardedEngine:
    """An engine on a GPU that is never run again once the GPU is lost.

    Args:
        engine: the engine.
        health: of the GPU.
    """

    def __init__(self, engine: Engine, health: DeviceHealth) -> None:
        self._engine, self._health = engine, health

    @property
    def provider(self) -> str:
        """What executes the model."""
        return self._engine.provider

    @property
    def items(self) -> int | None:
        """How many items it takes at once; None for any number."""
        return self._engine.items

    @property
    def width(self) -> int:
        """How many batches can run at once."""
        return int(getattr(self._engine, "width", 1))

    def run(self, *inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Run the model once.

        Raises:
            DeviceLostError: the GPU is lost, now or before.
        """
        if self._health.error:
            raise self._health.error
        try:
            return self._engine.run(*inputs)
        except Exception as error:
            if is_lost(error):
                raise self._health.lose(error) from error
            raise
