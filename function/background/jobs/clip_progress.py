"""How far a clip of a job is while it is worked on, and its finished parts."""

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

_MARK_S = 1.0


class JobClipProgress:
    """What a clip reads and writes while it is worked on: a `ClipProgress`.

    Args:
        files: has the parts.
        spec: the job.
        index: of the target.
        item: the target, as the store has it.
        keep_s: how long a part is kept.
        mark: puts the target down in the store.

    Attributes:
        item: the target as it is now.
    """

    def __init__(
        self,
        files: JobFiles,
        spec: JobSpec,
        index: int,
        *,
        item: JobItem,
        keep_s: float,
        mark: Callable[[JobItem], Awaitable[object]],
    ) -> None:
        self._files, self._spec, self._index, self._keep_s = files, spec, index, keep_s
        self._mark = mark
        self.item = replace(item, state=JobState.RUNNING, problem=None)

    def progress(self, done: int, total: int) -> None:
        """Count the frames that are done."""
        self.item = replace(self.item, frames=(done, total))

    async def mark_now_and_then(self) -> None:
        """Put down how far the target is, each second in which that has changed, for ever."""
        marked = self.item
        while True:
            await asyncio.sleep(_MARK_S)
            if marked != (now := self.item):
                marked = now
                await self._mark(now)

    async def get(self, name: str) -> bytes | None:
        """A finished part; None where there is none that this version of Ember has made."""
        try:
            kept = await self._files.get(self._place(name))
            whole = await kept.whole() if kept else b""
        except JobFilesError as error:
            log.warning("a part cannot be read", extra={"reason": str(error)})
            return None
        name_then, _, data = whole.partition(b"\n")
        return data if name_then == name.encode() else None

    async def put(self, name: str, data: bytes) -> None:
        """Keep a finished part; one that cannot be kept is lost with this try."""
        place, number = self._place(name), int(name.rpartition("-")[2])
        self.item = replace(self.item, parts=max(self.item.parts, number + 1))
        try:
            part = name.encode() + b"\n" + data
            await self._files.put(place, part, self._keep_s, self._spec.holder)
        except (JobFilesError, NoSpaceError) as error:
            log.warning("a part cannot be kept", extra={"reason": str(error) or "no room"})
        await self._mark(self.item)

    def _place(self, name: str) -> str:
        return self._spec.part(self._index, int(name.rpartition("-")[2]))
