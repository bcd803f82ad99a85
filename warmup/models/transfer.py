"""One file from its source into its partial file, whole and with the right digest.

Several parts come at once; their prefix is hashed while the rest still comes. A connection that
brings less than the floor is dropped. What fails is tried again from where it was.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from warmup.failures import UnavailableError
from warmup.models.file import HEAD
from warmup.models.partial import Head, PartialWriter
from warmup.objects.errors import RefusedError, RestartError, TransientError
from warmup.retry import Patience

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from warmup.models.partial import Partial, PartialRange
    from warmup.objects.protocol import Facts, Source
    from warmup.settings.settings import FetchSettings

T = TypeVar("T")

_HASH = 32 * 1024**2
_BUFFER = 4 * 1024**2  # large: between two buffers, the hash competes for the GIL with the network
_LOOK_S = 0.005


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer.

    Attributes:
        source: where the file comes from.
        partial: where it goes.
        settings: floor, stall time, retries.
        slots: one for each connection that may be open at once, of all transfers.
    """

    source: Source
    partial: Partial
    settings: FetchSettings
    slots: asyncio.Semaphore

    async def run(self) -> None:
        """Fetch what is missing.

        Raises:
            DamagedError: the source has something else; what came is gone.
            UnavailableError: the source does not give it; what came stays, to go on later.
            StoreError: the disk does not take it.
        """
        file = self.partial.file
        patience = Patience(self.settings.fetch_retries)
        while True:
            try:
                facts = await self._patient(self._stat, patience)
                got = await self._whole(facts)
            except RestartError as error:
                await self._pause(patience, error, 0)
                self.partial.begin("", keep=False)
                continue
            if got == file.sha256:
                return
            if not self.partial.resumed:
                head = bytearray(min(HEAD, file.size))
                self.partial.read(memoryview(head), 0)
                self.partial.discard()
                raise file.damaged(file.source, got, bytes(head))
            # What another process left may have been lost with the machine's power.
            self.partial.begin("", keep=False)

    async def _stat(self) -> Facts:
        file = self.partial.file
        async with self.slots:
            facts = await self._watched(self.source.stat(), lambda: 0, floor=0)
        if facts.size not in {None, file.size}:
            raise file.damaged(file.source, int(facts.size or 0), await self._head(facts))
        return facts

    async def _head(self, facts: Facts) -> bytes:
        """The first bytes of a file that has the wrong size."""
        head = Head(min(facts.size or 0, HEAD))
        with suppress(TransientError, RefusedError):
            if not head.full:
                await self._watched(self.source.read(facts, head), lambda: 0, floor=0)
        return bytes(head.content)

    async def _whole(self, facts: Facts) -> str:
        """Fetch all that is missing; the digest of the whole."""
        partial = self.partial
        keep = partial.fits(facts.tag) and facts.streams > 0
        partial.begin(facts.tag, keep=keep, parted=facts.streams > 0)
        missing = iter([part for part in partial.parts if part.at < part.stop])

        async def stream() -> None:
            for part in missing:
                await self._part(facts, part)

        streams = range(min(self.settings.fetch_connections, max(1, facts.streams)))
        try:
            *_, digest = await together(*(stream() for _ in streams), self._digest())
        finally:
            partial.save()
        return str(digest)

    async def _part(self, facts: Facts, part: PartialRange) -> None:
        """Fetch one part, with retries."""
        if facts.streams:
            patience = Patience(self.settings.fetch_retries)
            await self._patient(lambda: self._attempt(facts, part), patience, lambda: part.at)
            return
        try:
            await self._attempt(facts, part)
        except TransientError as error:
            raise RestartError(str(error), error.retry_after_s) from error

    async def _attempt(self, facts: Facts, part: PartialRange) -> None:
        writer = PartialWriter(self.partial, part)
        try:
            async with self.slots:
                read = self.source.read(facts, writer)
                await self._watched(read, lambda: part.at, self.settings.fetch_floor)
            if not writer.full:
                raise TransientError(f"it ended {part.stop - part.at} bytes early")
        finally:
            writer.leave()

    async def _watched(
        self, work: Coroutine[None, None, T], done: Callable[[], int], floor: int
    ) -> T:
        """The result of `work`, unless it brings less than `floor` bytes a second."""
        window = self.settings.fetch_stall_s
        task = asyncio.ensure_future(work)
        try:
            while True:
                before = done()
                finished, _ = await asyncio.wait({task}, timeout=window)
                if finished:
                    return task.result()
                gained = done() - before
                if gained < floor * window or not floor:
                    raise TransientError(
                        f"{gained} bytes in {window:g} s, which is less than EMBER_FETCH_FLOOR"
                        f" ({self.settings.fetch_floor} bytes/s)"
                    )
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _patient(
        self,
        attempt: Callable[[], Awaitable[T]],
        patience: Patience,
        done: Callable[[], int] = lambda: 0,
    ) -> T:
        """The result of the first attempt that does not fail."""
        while True:
            before = done()
            try:
                return await attempt()
            except RestartError:
                raise
            except TransientError as error:
                await self._pause(patience, error, done() - before)
            except RefusedError as error:
                raise self._unavailable(str(error)) from error

    async def _pause(self, patience: Patience, error: TransientError, gained: int) -> None:
        """Wait until the next attempt, or give up."""
        wait = patience.wait_s(gained, error.retry_after_s)
        if wait is None:
            again = f", {patience.failures} times in a row" if patience.failures > 1 else ""
            asked = error.retry_after_s
            later = f"; it asks to wait {asked:g} s" if asked else ""
            raise self._unavailable(f"{error}{again}{later}") from error
        await asyncio.sleep(wait)

    def _unavailable(self, reason: str) -> UnavailableError:
        file = self.partial.file
        return UnavailableError(f"{file.name}: {file.source}: {reason}")

    async def _digest(self) -> str:
        """Hash the file as it grows."""
        hasher, at, size = hashlib.sha256(), 0, self.partial.file.size
        buffer = memoryview(bytearray(_BUFFER))

        def feed(stop: int) -> None:
            position = at
            while position < stop:
                count = self.partial.read(buffer[: stop - position], position)
                hasher.update(buffer[:count])
                position += count

        while at < size:
            self.partial.save_sometimes()
            stop = min(self.partial.prefix, at + _HASH)
            if stop - at >= _BUFFER or stop == size:
                await asyncio.to_thread(feed, stop)
                at = stop
            else:
                await asyncio.sleep(_LOOK_S)
        return hasher.hexdigest()


async def unbroken(work: Coroutine[None, None, T]) -> T:
    """The result of work that comes to its end even when the caller is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    finally:
        await asyncio.wait({task})


async def together(*works: Coroutine[None, None, T]) -> list[T]:
    """The results of all; the first failure ends the others, and none is left running."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
