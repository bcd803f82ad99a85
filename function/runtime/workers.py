"""The threads that compute, so that the event loop never does."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from function.runtime.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """A number of threads; best the number of CPUs, each inference using one.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, "work")
        self._watch = Watch()

    @property
    def longest_s(self) -> float:
        """Seconds for which the oldest job has been running; 0 when none is."""
        return self._watch.longest_s

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on a thread; cancelled before it begins, it never begins."""

        def job() -> T:
            with self._watch.job():
                return work(*args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._pool, job)

    def close(self) -> None:
        """Drop what has not begun; what runs is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
