"""The memory that the process holds: watched, and given back."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from function.runtime import heap, memory

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("ember.server")

_READ_S, _HIGH_READINGS = 1.0, 3
_TRIM_S = 2.0


async def watch(soft_limit: float, on_excess: Callable[[], None]) -> None:
    """Call `on_excess` once the process holds too much; one high reading may be a large photo.

    Args:
        soft_limit: in bytes, or below 1 as a part of what the container may hold; 0 for any amount.
        on_excess: is called once; then the watch ends.
    """
    limit = soft_limit if soft_limit >= 1 else soft_limit * (memory.limit() or 0)
    high = 0
    while limit and high < _HIGH_READINGS:
        await asyncio.sleep(_READ_S)
        held = memory.held()
        high = high + 1 if held > limit else 0
    if limit:
        log.error("too much memory", extra={"held": held, "limit": int(limit)})
        on_excess()


async def trim() -> None:
    """Now and then give back what photos have used, so that the process does not seem to grow."""
    while True:
        await asyncio.sleep(_TRIM_S)
        await asyncio.to_thread(heap.trim)
