"""A sign of life now and then: an idle replica stays warm, and a dead one is noticed."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from warmup.replica import Replica


class Beating(Protocol):
    """What can give a sign of life."""

    @property
    def cold(self) -> bool:
        """Whether it would have to load something first; it is then left alone."""
        ...

    @property
    def idle_s(self) -> float:
        """Seconds since its last real work or sign of life; 0 while it works."""
        ...

    async def beat(self) -> None:
        """Do what a request does; raises when that fails or gives a wrong result."""
        ...


async def keep(
    beating: Beating,
    replica: Replica,
    every_s: float,
    record: Callable[[float | None], None],
) -> None:
    """Beat whenever a ready replica has been idle for a while. A failure ends its readiness.

    Args:
        beating: gives the signs.
        replica: is to be repaired when one fails.
        every_s: how long it must have been idle.
        record: called with the seconds that a sign took, or with None when it failed.
    """
    while True:
        await asyncio.sleep(max(every_s - beating.idle_s, every_s / 10))
        if not replica.ready or beating.cold or beating.idle_s < every_s:
            continue
        began = time.perf_counter()
        try:
            await beating.beat()
        except Exception as error:
            record(None)
            replica.repair(error)
        else:
            record(time.perf_counter() - began)
