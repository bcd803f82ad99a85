"""What every holder of a lease does: renew it while it works, and look for work to take over."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from function import tasks
from function.background.records import RecordStoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from function.tasks import Running

log = logging.getLogger("ember.lease")

PARTS = 3
"""How often a lease is renewed, and looked for, while it lasts."""


@asynccontextmanager
async def renewing(
    renew: Callable[[], Awaitable[bool]], every_s: float
) -> AsyncIterator[asyncio.Task[None]]:
    """Renew a lease while the body runs.

    A lease of 30 seconds that is renewed every 10 outlives two calls that fail; whoever is silent
    for longer than that finds at the next call that it was taken over.

    Args:
        renew: whether the lease is still the caller's.
        every_s: how often.

    Yields:
        A task that ends when the lease is lost.
    """

    async def work() -> None:
        while True:
            await asyncio.sleep(every_s)
            try:
                if not await renew():
                    return
            except RecordStoreError as error:
                log.warning("a lease cannot be renewed", extra={"reason": str(error)})

    task = asyncio.create_task(work())
    try:
        yield task
    finally:
        await tasks.end(task)


async def look_for_work(
    look: Callable[[], Awaitable[None]],
    pause: Callable[[], Awaitable[object]],
    log: logging.Logger,
    *,
    unavailable: str,
    failed: str,
) -> None:
    """Look for work to take, for ever, whatever goes wrong with it.

    Args:
        look: takes what is to be taken now.
        pause: returns when to look next.
        log: where it is said that looking has not worked.
        unavailable: the message when the store does not answer.
        failed: the message for anything else.
    """
    while True:
        await pause()
        try:
            await look()
        except RecordStoreError as error:
            log.warning(unavailable, extra={"reason": str(error)})
        except Exception:
            log.exception(failed)


async def fill(running: Running[Any], slots: int, take: Callable[[], Awaitable[bool]]) -> None:
    """Take work as long as a slot is free and there is any; `take` returns whether there was."""
    while len(running) < slots and await take():
        pass
