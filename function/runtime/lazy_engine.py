"""One model that is loaded once, whoever asks first, and says how far it is."""

from __future__ import annotations

import asyncio
import time
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    import numpy as np
    from numpy.typing import NDArray

    from function.runtime.engine import Engine


class LoadState(StrEnum):
    """How far a model is; warmed means that it has run."""

    WAITING = "waiting"
    LOADING = "loading"
    LOADED = "loaded"
    WARMED = "warmed"
    FAILED = "failed"


class LazyEngine:
    """An `Engine` that may not be loaded yet, so that a pipeline can be built before it is.

    Args:
        open: loads the model; runs in a thread of `pool`.
        pool: where loading happens; not the threads that compute, as it is not bounded in time.
    """

    def __init__(self, open: Callable[[], Engine], pool: Executor) -> None:  # noqa: A002
        self._open = open
        self._pool = pool
        self._engine: Engine | None = None
        self._loading: asyncio.Task[None] | None = None
        self.state = LoadState.WAITING
        self.load_s: float | None = None

    @property
    def loaded(self) -> bool:
        """Whether it can run."""
        return self._engine is not None

    @property
    def provider(self) -> str:
        """What executes the model; empty before it is loaded."""
        return self._engine.provider if self._engine else ""

    @property
    def items(self) -> int | None:
        """How many items it takes at once; None before it is loaded."""
        return self._engine.items if self._engine else None

    @property
    def engine(self) -> Engine | None:
        """What was loaded."""
        return self._engine

    def run(self, *inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Run the model once."""
        if self._engine is None:
            raise RuntimeError("a model was run before it was loaded")
        outputs = self._engine.run(*inputs)
        self.state = LoadState.WARMED
        return outputs

    async def load(self) -> None:
        """Load the model unless it is loaded. Callers at the same time share one loading.

        A caller that goes away does not stop it. After a failure the next caller tries again.

        Raises:
            Exception: whatever `open` raised.
        """
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
            # The callers may all be gone when it fails.
            self._loading.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._loading)

    async def _load(self) -> None:
        self.state = LoadState.LOADING
        began = time.perf_counter()
        try:
            self._engine = await asyncio.get_running_loop().run_in_executor(self._pool, self._open)
        except BaseException:
            self.state, self._loading = LoadState.FAILED, None
            raise
        self.state, self.load_s = LoadState.LOADED, time.perf_counter() - began
