"""The threads that compute, so that the event loop never does."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from function.runtime.scheduling.permits import ComputeTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.problems import Problem
    from function.runtime.scheduling.permits import ComputePermits

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """Threads that do tasks in the order in which they get permits.

    Args:
        permits: to compute.
        threads: how many at most; one for each task that may be in work, as those that wait for a
            batch are threads as well.
    """

    def __init__(self, permits: ComputePermits, threads: int) -> None:
        self._permits = permits
        self._pool = ThreadPoolExecutor(threads, "work")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on a thread, for the running request; cancelled early, it never begins.

        Raises:
            AbandonedError, DeadlinePassedError: it was too late to begin.
        """
        future: Future[T] = Future()
        context = contextvars.copy_context()
        task = ComputeTask(
            run=partial(_done, future, partial(context.run, work, *args, **kwargs)),
            drop=partial(_refuse, future),
            spawn=lambda task: self._pool.submit(self._permits.work, task),
        )
        self._permits.post(task)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Drop what has not begun; what runs is not waited for."""
        self._permits.close()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _done(future: Future[Any], work: Callable[[], Any]) -> Callable[[], object]:
    """Do some work, unless the future was cancelled; returns what puts the result into it."""
    if not future.set_running_or_notify_cancel():
        return lambda: None
    try:
        result = work()
    except BaseException as error:
        return partial(future.set_exception, error)
    return partial(future.set_result, result)


def _refuse(future: Future[Any], error: Problem) -> None:
    """End a task that is not to begin."""
    if future.set_running_or_notify_cancel():
        future.set_exception(error)
