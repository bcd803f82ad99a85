"""A timeout that does not blame the other side for what keeps this process busy."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_TICKS = 10


@asynccontextmanager
async def timeout(limit_s: float) -> AsyncIterator[None]:
    """Bound what the body waits for by seconds in which the event loop was free to see an answer.

    The time is counted in ten ticks. A loop that is held up for long, as when hundreds of requests
    come at once, misses one of them, not all, and reads an answer that has come before the time is
    up. With a limit of 0.2 s: an answer comes after 0.01 s, while the loop is held up for a whole
    second; `asyncio.timeout` would end the wait, whereas here nine ticks are left.

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
