"""Frames in work: several at once on all CPUs, in order at both ends, few in memory."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


class Run(Protocol):
    """Does something in a thread as soon as there is a CPU for it; see `Workers.run`."""

    def __call__(
        self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]:
        """Wait for what it gives."""
        ...


async def in_order(
    run: Run,
    read: Callable[[], T | None],
    change: Callable[[T], R],
    write: Callable[[R], None],
    ahead: int,
) -> int:
    """Do three steps with everything: read, change, write.

    Args:
        run: does each step of each thing in a thread.
        read: gives the next thing, or None at the end; one at a time.
        change: works on a thing; several at once.
        write: gets what `change` gave; one at a time, in the order of `read`.
        ahead: how many things at most have been read and not yet written.

    Returns:
        How many there were.

    Raises:
        Exception: the first that a step raises; nothing further begins then.
    """

    async def finish(thing: T, before: asyncio.Task[None] | None) -> None:
        changed = await run(change, thing)
        if before:
            await before
        await run(write, changed)

    count, last = 0, None
    window: deque[asyncio.Task[None]] = deque()
    try:
        while (thing := await run(read)) is not None:
            count += 1
            last = asyncio.create_task(finish(thing, last))
            del thing
            window.append(last)
            while len(window) >= ahead or (window and window[0].done()):
                await window.popleft()
        for task in window:
            await task
    finally:
        for task in window:
            task.cancel()
        await asyncio.gather(*window, return_exceptions=True)
    return count
