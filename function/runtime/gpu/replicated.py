"""One model on several devices, as one engine."""

from __future__ import annotations

from queue import LifoQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from function.runtime.engine import Engine


class ReplicatedEngine:
    """Runs each batch on an engine that is free; who comes when none is, waits.

    The device that became free last is taken first, so that a lone request finds a warm one.

    Args:
        engines: of one model, each on a device of its own.
    """

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._engines = engines
        self._free: LifoQueue[Engine] = LifoQueue()
        for engine in reversed(engines):
            self._free.put(engine)

    @property
    def width(self) -> int:
        """How many batches can run at once."""
        return len(self._engines)

    @property
    def provider(self) -> str:
        """What executes the model; the same on all devices."""
        return self._engines[0].provider

    @property
    def items(self) -> int | None:
        """How many items it takes at once; None for any number."""
        return self._engines[0].items

    def run(self, *inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Run the model once."""
        engine = self._free.get()
        try:
            return engine.run(*inputs)
        finally:
            self._free.put(engine)
