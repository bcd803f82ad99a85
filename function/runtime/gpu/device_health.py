"""A GPU with a broken context: nothing in this process can use it any more, a new one can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.runtime.gpu.cuda_errors import lost_by
from function.runtime.out_of_memory import is_out_of_memory
from warmup.failures import WarmupError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from function.runtime.engine import Engine


class DeviceLostError(WarmupError):
    """The GPU is lost to this process."""

    exit_code = 69
    final = True


def is_lost(error: BaseException) -> bool:
    """Whether an error says that; running out of memory does not."""
    if isinstance(error, DeviceLostError) or lost_by(str(error)):
        return True
    below = error.__cause__
    return below is not None and is_lost(below)


def loss(error: BaseException) -> DeviceLostError | None:
    """The loss of the GPU that an error tells of; where it says nothing, a tiny copy tells."""
    if isinstance(error, DeviceLostError):
        return error
    said = _words(error)
    told = None if is_lost(error) else _probed(error)
    if told is None and not is_lost(error):
        return None
    told = told or lost_by(said)
    why = said[:200] if told is None or told in said[:200] else f"{told}: {said[:200]}"
    return DeviceLostError(f"the GPU is lost to this process ({why})")


def _probed(error: BaseException) -> str | None:
    """What a GPU says that does not do what it is told; None where all do, or nobody can tell."""
    from function.runtime.gpu import device

    if is_out_of_memory(error):
        return None
    try:
        device.probe()
    except Exception as found:
        return None if is_out_of_memory(found) else _words(found)
    return None


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())


class DeviceHealth:
    """Whether the GPU of this process is lost; all engines share it, as they share the context.

    Attributes:
        error: what was said when it was lost; None as long as it is not.
        on_lost: called once, in any thread.
    """

    def __init__(self) -> None:
        self.error: DeviceLostError | None = None
        self.on_lost: Callable[[DeviceLostError], None] = lambda _: None

    def lose(self, loss: DeviceLostError) -> DeviceLostError:
        """Note that the GPU is lost; gives what is to be raised, which is what was said first."""
        if self.error is None:
            self.error = loss
            self.on_lost(loss)
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
            if found := loss(error):
                raise self._health.lose(found) from error
            raise
