"""A service inside a subcommand: its models loaded, its threads ended afterwards."""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING
from uuid import uuid4

from function.process.wiring.audit import build_audit
from function.process.wiring.service import build_service
from function.request_context import Entry, Lane, RequestContext, Sender
from function.runtime import installed
from warmup.settings import variables

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from function.service.service import Service
    from function.settings import Settings


@asynccontextmanager
async def opened(settings: Settings, *, swaps: bool = False) -> AsyncIterator[Service]:
    """A service that can work, but is neither warm nor on variants: that pays only for a server.

    Args:
        settings: all of them.
        swaps: whether it will swap, for which lists and the audit have to be open.

    Raises:
        SettingsError: what the settings name for trust cannot be used.
        WarmupError: the models cannot be loaded, or there is nothing that runs them.
    """
    installed.check()
    ready = build_service(variables.replace(settings, variant=None))
    # Results go to standard output, perhaps a photo.
    ready.trust.audit = build_audit(settings.audit, settings.access, stream=2)
    try:
        async with ready.trust.running() if swaps else nullcontext():
            await ready.load()
            yield ready
    finally:
        ready.close()


def commanded(request_id: str | None = None) -> RequestContext:
    """For whom a command works: whoever gave it, by an id of its own unless it has one."""
    sender = Sender(Entry.COMMAND, request_id or uuid4().hex)
    return RequestContext(Lane.INTERACTIVE, sender=sender)
