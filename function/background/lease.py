"""Leases: who works on something renews a lease; when it runs out, another takes over."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger("ember.lease")

PARTS = 3
"""How often a lease is renewed, and looked for, while it lasts."""


async def keep(
    renew: Callable[[], Awaitable[bool]], every_s: float, silent: type[Exception]
) -> None:
    """Renew a lease until it is lost.

    Args:
        renew: says whether the lease is still the asker's.
        every_s: how often.
        silent: what `renew` raises when nobody answers; it is asked again.
    """
    while True:
        await asyncio.sleep(every_s)
        try:
            if not await renew():
                return
        except silent as error:
            log.warning("a lease cannot be renewed", extra={"reason": str(error)})
