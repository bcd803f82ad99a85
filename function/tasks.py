"""Tasks of the event loop: ending them for certain, and those that go by a key."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

log = logging.getLogger("ember.lease")

T = TypeVar("T")

_AGAIN_S = 2.0
"""After how long a task that was cancelled and goes on is cancelled once more."""


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks until they have ended, whatever comes of them.

    A cancel can get lost in a library, when it comes just as what is waited for is there. Nothing
    that is used here is known to do that, so it is worth a line of the log; the other reason is
    that whoever has to be notified of the end does not answer.
    """
    for tries in itertools.count():
        if not (pending := {task for task in tasks if not task.done()}):
            break
        for task in pending:
            if tries:
                log.warning(
                    "a task has not ended and is cancelled again", extra={"task": _name(task)}
                )
            task.cancel()
        await asyncio.wait(pending, timeout=_AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)


class Running(Generic[T]):
    """What is being worked on, by its key."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, key: str) -> bool:
        return key in self._tasks

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __getitem__(self, key: str) -> asyncio.Task[T]:
        return self._tasks[key]

    def begin(self, key: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin a piece of work."""
        task = self._tasks[key] = asyncio.create_task(work)
        task.add_done_callback(lambda done: self._ended(key, done))
        return task

    async def close(self, patience_s: float) -> None:
        """Let all of it end; what takes longer is cancelled."""
        if not (tasks := set(self._tasks.values())):
            return
        _, late = await asyncio.wait(tasks, timeout=patience_s)
        await end(*late)

    def _ended(self, key: str, task: asyncio.Task[T]) -> None:
        """Strike out a piece of work, unless the same was begun anew meanwhile."""
        if self._tasks.get(key) is task:
            del self._tasks[key]


def _name(task: asyncio.Task[Any]) -> str:
    coroutine = task.get_coro()
    return getattr(coroutine, "__qualname__", repr(coroutine))
