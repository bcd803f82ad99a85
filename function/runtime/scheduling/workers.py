"""The threads that compute, so that the event loop never does."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from function.runtime.scheduling.permits import ComputeTask, abandoned

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.runtime.scheduling.permits import ComputePermits

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """Threads that do jobs in the order in which the gate lets them.

    Args:
        gate: the permits.
        threads: how many at most; one for each job that may be in work, as those that wait for a
            batch are threads as well.
    """

    def __init__(self, gate: ComputePermits, threads: int) -> None:
        self._gate = gate
        self._pool = ThreadPoolExecutor(threads, "work")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on a thread, for whom this task works; cancelled early, it never begins.

        Raises:
            Problem: it was too late to begin.
        """
        future: Future[T] = Future()
        context = contextvars.copy_context()
        job = ComputeTask(
            run=partial(_done, future, partial(context.run, work, *args, **kwargs)),
            drop=partial(_refuse, future),
            spawn=lambda job: self._pool.submit(self._gate.work, job),
        )
        self._gate.post(job)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Drop what has not begun; what runs is not waited for."""
        self._gate.close()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _done(future: Future[Any], work: Callable[[], Any]) -> Callable[[], object]:
    """Do some work, unless the future was cancelled; gives what puts the result into the future."""
    if not future.set_running_or_notify_cancel():
        return lambda: None
    try:
        result = work()
    except BaseException as error:
        return partial(future.set_exception, error)
    return partial(future.set_result, result)


def _refuse(future: Future[Any]) -> None:
    """End a job that is not to begin."""
    if future.set_running_or_notify_cancel():
        future.set_exception(abandoned())
