"""How long an answer is waited for, whatever else this process has to do meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_TICKS = 10


@asynccontextmanager
async def within(limit_s: float) -> AsyncIterator[None]:
    """Bound what the body waits for by seconds in which the event loop was free to see an answer.

    The time is counted in ten ticks. A loop that is held up for long, as when hundreds of requests
    come at once, misses one of them, not all: that this process is busy says nothing about the
    other side, and an answer that is there already is read before the time is up.

    Raises:
        TimeoutError: the body takes longer.
    """
    loop, left = asyncio.get_running_loop(), _TICKS
    timer: asyncio.TimerHandle | None = None

    def tick() -> None:
        nonlocal left, timer
        if left:
            left, timer = left - 1, loop.call_later(limit_s / _TICKS, tick)
        else:
            clock.reschedule(loop.time())

    async with asyncio.timeout(None) as clock:
        tick()
        try:
            yield
        finally:
            if timer:
                timer.cancel()
