"""Jobs and events for as long as the application runs, and their end with it."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

from function import tasks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from function.background.events.processor import EventProcessor
    from function.background.jobs.runner import JobRunner
    from function.storage.storage import Storage


class BackgroundTasks:
    """Works on jobs and events while requests are answered.

    Args:
        processor: works on events; None where none are taken in.
        runner: works on jobs.
        storage: is closed at the end.
        patience_s: how many seconds requests, events and jobs together may take to end.
    """

    def __init__(
        self,
        processor: EventProcessor | None,
        runner: JobRunner,
        storage: Storage,
        patience_s: float,
    ) -> None:
        self._processor, self._runner, self._storage = processor, runner, storage
        self._patience_s, self._until = patience_s, math.inf

    async def stopping(self, _: object) -> None:
        """Let the time begin in which everything has to end."""
        self._until = time.monotonic() + self._patience_s

    async def running(self, _: object) -> AsyncIterator[None]:
        """Begin; at the end, give what requests have left the rest of the time."""
        going_on = [asyncio.create_task(self._runner.run())]
        if self._processor:
            going_on.append(asyncio.create_task(self._processor.take_over()))
        yield
        await tasks.end(*going_on)
        left_s = max(0.0, min(self._patience_s, self._until - time.monotonic()))
        closing = [self._runner.close(left_s)]
        if self._processor:
            closing.append(self._processor.close(left_s))
        await asyncio.gather(*closing)
        await self._storage.close()
