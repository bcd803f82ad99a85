"""Fetching several files at once into a store, or waiting for the processes that already do."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warmup.extras import bring
from warmup.failures import StoppedError, StoreError, UnavailableError
from warmup.models import lock
from warmup.models.partial import Partial, progress
from warmup.models.progress import FetchState
from warmup.models.transfer import Transfer, together, unbroken
from warmup.objects.sources import Sources

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from warmup.models.file import File
    from warmup.models.progress import FetchProgress
    from warmup.models.store import Held, Store
    from warmup.objects.protocol import Source
    from warmup.settings.settings import FetchSettings

_TICK_S = 0.1


def _source(file: File, sources: Sources) -> Source:
    try:
        return sources.of(file.uri)
    except ModuleNotFoundError as error:
        raise UnavailableError(
            f"{file.name}: {file.source} needs {error.name}: {bring('gcs')}"
        ) from error


def run(job: FetchJob, missing: list[File], stop: threading.Event | None) -> None:
    """Do a job, in an event loop of its own."""
    asyncio.run(job.fetch(missing, stop))


@dataclass(frozen=True, slots=True)
class FetchJob:
    """One prefetch as far as it fetches.

    Attributes:
        store: where to.
        settings: how.
        find: the file if it is in a store and right.
        shared: the store that other processes fetch into and we do not; None without one.
        keep: digests that must not be evicted for it.
        ways: the progress of each file, by digest.
        report: called with what has changed.
        held: gets each file, by digest.
    """

    store: Store
    settings: FetchSettings
    find: Callable[[File], Held | None]
    shared: Store | None
    keep: frozenset[str]
    ways: dict[str, FetchProgress]
    report: Callable[[FetchProgress], None]
    held: dict[str, Held]
    partials: dict[str, Partial] = field(default_factory=dict)

    async def fetch(self, missing: list[File], stop: threading.Event | None) -> None:
        """Fetch all of them at once."""
        names = ", ".join(file.name for file in missing)
        with lock.exclusive(self.store.lock("store")):
            self.store.make_room(sum(map(self.store.missing, missing)), self.keep, names)
        slots = asyncio.Semaphore(self.settings.fetch_connections)
        async with Sources(self.settings.fetch_stall_s) as sources:
            work = together(*(self._one(file, sources, slots) for file in missing))
            task = asyncio.ensure_future(work)
            try:
                while not (await asyncio.wait({task}, timeout=_TICK_S))[0]:
                    if stop and stop.is_set():
                        raise StoppedError("stopped while fetching; what has come is kept")
                    self._tell()
                await task
            finally:
                task.cancel()
                await asyncio.wait({task})

    async def _one(self, file: File, sources: Sources, slots: asyncio.Semaphore) -> None:
        """Fetch one file, or wait for the process that does."""
        way = self.ways[file.sha256]
        while file.sha256 not in self.held:
            with lock.attempt(self.store.lock(file.sha256)) as ours:
                if found := await asyncio.to_thread(self.find, file):
                    self.held[file.sha256] = found
                elif self.shared and self.shared.fetching(file.sha256):
                    await self._wait(way, self.shared, file)
                elif ours:
                    await self._fetch(file, _source(file, sources), slots)
                else:
                    await self._wait(way, self.store, file)
        way.end()
        self.report(way)

    async def _wait(self, way: FetchProgress, store: Store, file: File) -> None:
        """Let the process go on that fetches a file into a store."""
        way.state, way.done = FetchState.WAITING, progress(store, file)
        self.report(way)
        await asyncio.sleep(_TICK_S)

    async def _fetch(self, file: File, source: Source, slots: asyncio.Semaphore) -> None:
        partial = self.partials[file.sha256] = Partial(self.store, file, self.keep)
        self.ways[file.sha256].begin(partial.done)
        try:
            await Transfer(source, partial, self.settings, slots).run()
            commit = asyncio.to_thread(self.store.commit, file, partial.fd)
            self.held[file.sha256] = await unbroken(commit)
        except StoreError:
            partial.discard()
            raise
        finally:
            del self.partials[file.sha256]
            if file.sha256 not in self.held:
                if not partial.done:  # nothing to go on with: give its room back
                    partial.discard()
                partial.close()

    def _tell(self) -> None:
        for sha256, partial in self.partials.items():
            self.ways[sha256].done = partial.done
            self.report(self.ways[sha256])
