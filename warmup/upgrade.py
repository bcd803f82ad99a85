"""From less to more: what became ready on variants, or without plans, gets the rest behind."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING, Protocol

from warmup.failures import WarmupError
from warmup.phase import Phase
from warmup.retry import Retry

if TYPE_CHECKING:
    from warmup.replica import Replica

log = logging.getLogger("ember.upgrade")

_RETRY = Retry(total_s=math.inf, most_s=300.0)


class Upgradable(Protocol):
    """What may run on less than it could."""

    @property
    def lesser(self) -> bool:
        """Whether it does."""
        ...

    async def upgrade(self) -> None:
        """Change to the best; raises when that fails, and then what served still does."""
        ...


async def follow(upgradable: Upgradable, replica: Replica, retry: Retry = _RETRY) -> None:
    """Upgrade as soon as the replica is ready; a failure is tried again and costs no readiness.

    Args:
        upgradable: what the replica has warmed.
        replica: is asked when it is ready, and left alone.
        retry: the pauses between tries; when it gives up, the lesser stays.
    """
    ready = asyncio.Event()

    def note(phase: Phase) -> None:
        if phase is Phase.READY:
            ready.set()
        else:
            ready.clear()

    replica.listeners.append(note)
    note(replica.phase)
    loop, failures, since = asyncio.get_running_loop(), 0, 0.0
    while True:
        await ready.wait()
        if not upgradable.lesser:
            return
        try:
            await upgradable.upgrade()
        except Exception as error:
            since = since if failures else loop.time()
            failures += 1
            pause = retry.pause(failures, loop.time() - since)
            facts = {"failures": failures, "again_in_s": pause}
            if isinstance(error, WarmupError):
                log.warning("what serves stays for now", extra=facts | {"reason": str(error)})
            else:
                log.exception("what serves stays for now", extra=facts)
            if pause is None:
                return
            await asyncio.sleep(pause)
        else:
            failures = 0
            log.info("the upgrade serves")
