"""A clip of a job while it is in work: how far it is, and its finished parts on the shelf."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from function.background.jobs.files import JobFilesError, NoSpaceError
from function.background.jobs.job import JobState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from function.background.jobs.files import JobFiles
    from function.background.jobs.job import JobItem, JobSpec

log = logging.getLogger("ember.jobs")

_TELL_S = 1.0


class JobClipProgress:
    """What a clip needs while it is in work: `Parts`, and whom to tell how far it is.

    Args:
        shelf: has the parts.
        spec: the job.
        at: which target.
        item: it, as it is in the book.
        keep_s: how long the shelf keeps a part.
        mark: writes the target down.

    Attributes:
        item: the target as it is now.
    """

    def __init__(
        self,
        shelf: JobFiles,
        spec: JobSpec,
        at: int,
        *,
        item: JobItem,
        keep_s: float,
        mark: Callable[[JobItem], Awaitable[object]],
    ) -> None:
        self._shelf, self._spec, self._at, self._keep_s = shelf, spec, at, keep_s
        self._mark = mark
        self.item = replace(item, state=JobState.RUNNING, problem=None)

    def progress(self, done: int, total: int) -> None:
        """See `Progress`."""
        self.item = replace(self.item, frames=(done, total))

    async def tell(self) -> None:
        """Write down how far it is, now and then, for ever."""
        told = self.item
        while True:
            await asyncio.sleep(_TELL_S)
            if told != (now := self.item):
                told = now
                await self._mark(now)

    async def get(self, name: str) -> bytes | None:
        """See `Parts`. A part that another version of Ember has made is none."""
        try:
            kept = await self._shelf.get(self._place(name))
            whole = await kept.whole() if kept else b""
        except JobFilesError as error:
            log.warning("a part cannot be read", extra={"reason": str(error)})
            return None
        made_as, _, data = whole.partition(b"\n")
        return data if made_as == name.encode() else None

    async def put(self, name: str, data: bytes) -> None:
        """See `Parts`. What cannot be kept is only for this try."""
        place, number = self._place(name), int(name.rpartition("-")[2])
        self.item = replace(self.item, parts=max(self.item.parts, number + 1))
        try:
            part = name.encode() + b"\n" + data
            await self._shelf.put(place, part, self._keep_s, self._spec.holder)
        except (JobFilesError, NoSpaceError) as error:
            log.warning("a part cannot be kept", extra={"reason": str(error) or "no room"})
        await self._mark(self.item)

    def _place(self, name: str) -> str:
        return self._spec.part(self._at, int(name.rpartition("-")[2]))
