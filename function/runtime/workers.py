"""The threads that compute, so that the event loop never does."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from function.runtime.gate import abandoned

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.runtime.gate import Gate

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """Threads, of which only as many compute as the gate lets; the others wait.

    Args:
        gate: the permits.
        threads: how many; one for each job that may be in work, so that the gate chooses among all.
    """

    def __init__(self, gate: Gate, threads: int) -> None:
        self._gate = gate
        self._pool = ThreadPoolExecutor(threads, "work")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on a thread, for whom this task works; cancelled early, it never begins.

        Raises:
            Problem: it was too late to begin.
        """
        gone = False

        def job() -> T:
            with self._gate.held():
                if gone:
                    raise abandoned()
                return work(*args, **kwargs)

        context = contextvars.copy_context()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, context.run, job)
        except asyncio.CancelledError:
            gone = True
            raise

    def close(self) -> None:
        """Drop what has not begun; what runs is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._gate.close()
