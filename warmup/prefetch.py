"""All files of some models into the store, proven; what is there already costs next to nothing.

Nothing of the network is imported, and no event loop runs, unless something must be fetched.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from warmup import lock
from warmup.failures import DamagedError, StoppedError, StoreError, UnavailableError
from warmup.progress import Progress, State
from warmup.store import Held, Store, default_root

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from warmup.fetch.partial import Partial
    from warmup.fetch.source import Source
    from warmup.fetch.sources import Sources
    from warmup.file import File
    from warmup.manifest import Model
    from warmup.settings import WarmupSettings

log = logging.getLogger("ember.prefetch")

_TICK_S = 0.1
_HASHERS = 4


@dataclass(frozen=True, slots=True)
class Ready:
    """Models whose files are all here and right, and stay until `close`.

    Attributes:
        models: as they were given, but every file has its path.
    """

    models: tuple[Model, ...]
    held: tuple[Held, ...]

    def close(self) -> None:
        """Allow that they are evicted."""
        for held in self.held:
            held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def prefetch(
    models: Sequence[Model],
    settings: WarmupSettings,
    *,
    report: Callable[[Progress], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> Ready:
    """Make sure that every file of the models is here and right.

    It blocks; a server calls it in a thread. A file that is fetched by another process at the same
    time is waited for. A damaged file in the store is fetched anew.

    Args:
        models: their graphs and all variants.
        settings: store, offline, and how to fetch.
        report: called with what has changed, in this thread or others, a few times a second.
        stop: end early when it is set.

    Raises:
        DamagedError: a source, or a file in its own place, is not what the manifest says.
        UnavailableError: a source does not give its file, or it is remote and we are offline.
        StoreError: the store cannot take it.
        StoppedError: `stop` was set.
    """
    store = open_store(settings)
    files = {file.sha256: file for model in models for file in model.files}
    ways = {key: Progress(file.name, file.size) for key, file in files.items()}
    held: dict[str, Held] = {}

    def look(file: File) -> None:
        report(ways[file.sha256])
        if found := _found(store, file):
            held[file.sha256] = found
            ways[file.sha256].end()
            report(ways[file.sha256])

    try:
        with ThreadPoolExecutor(_HASHERS, "verify") as pool:
            list(pool.map(look, files.values()))
        if missing := [file for file in files.values() if file.sha256 not in held]:
            _may_fetch(missing, store, settings)
            work = _Work(store, settings, frozenset(files), ways, report, held)
            asyncio.run(work.fetch(missing, stop))
    except BaseException:
        for one in held.values():
            one.close()
        raise
    located = {key: one.file.path for key, one in held.items()}

    def here(file: File) -> File:
        return replace(file, path=located[file.sha256])

    return Ready(
        tuple(
            replace(model, file=here(model.file), variants=tuple(map(here, model.variants)))
            for model in models
        ),
        tuple(held.values()),
    )


def open_store(settings: WarmupSettings) -> Store:
    """The store that the settings name."""
    return Store(settings.store or default_root(), settings.store_quota)


def _found(store: Store, file: File) -> Held | None:
    """The file if it is here and right; None if it must be fetched."""
    try:
        return store.find(file)
    except DamagedError as error:
        if file.path:
            raise
        log.warning("damaged, will be fetched anew", extra={"file": file.name, "why": str(error)})
        with suppress(OSError), lock.attempt(store.lock(file.sha256)) as ours:
            if ours:
                store.drop(file.sha256)
        return None


def _may_fetch(missing: list[File], store: Store, settings: WarmupSettings) -> None:
    """Find out what can be known before anything is fetched."""
    if settings.offline:
        remote = [file for file in missing if urlsplit(file.uri).scheme != "file"]
        if remote:
            names = ", ".join(f"{file.name} ({file.source})" for file in remote)
            raise UnavailableError(
                f"EMBER_OFFLINE is set, but the store {store.root} lacks, or has damaged: {names}"
            )
    try:
        store.create()
    except StoreError as error:
        names = ", ".join(file.name for file in missing)
        raise StoreError(f"{error}; missing are: {names}") from error


@dataclass(frozen=True, slots=True)
class _Work:
    """What fetching needs, and fills."""

    store: Store
    settings: WarmupSettings
    keep: frozenset[str]
    ways: dict[str, Progress]
    report: Callable[[Progress], None]
    held: dict[str, Held]
    partials: dict[str, Partial] = field(default_factory=dict)

    async def fetch(self, missing: list[File], stop: threading.Event | None) -> None:
        """Fetch all of them at once."""
        from warmup.fetch.sources import Sources
        from warmup.fetch.transfer import together

        names = ", ".join(file.name for file in missing)
        with lock.exclusive(self.store.lock("store")):
            self.store.make_room(sum(map(self.store.missing, missing)), self.keep, names)
        slots = asyncio.Semaphore(self.settings.fetch_connections)
        async with Sources(self.settings) as sources:
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
        from warmup.fetch.partial import progress

        way = self.ways[file.sha256]
        while file.sha256 not in self.held:
            with lock.attempt(self.store.lock(file.sha256)) as ours:
                if found := await asyncio.to_thread(_found, self.store, file):
                    self.held[file.sha256] = found
                elif ours:
                    await self._fetch(file, sources.of(file), slots)
                else:
                    way.state, way.done = State.WAITING, progress(self.store, file)
                    self.report(way)
                    await asyncio.sleep(_TICK_S)
        way.end()
        self.report(way)

    async def _fetch(self, file: File, source: Source, slots: asyncio.Semaphore) -> None:
        from warmup.fetch.partial import Partial
        from warmup.fetch.transfer import Transfer, unbroken

        partial = self.partials[file.sha256] = Partial(self.store, file, self.keep)
        self.ways[file.sha256].begin(partial.done)
        try:
            await Transfer(source, partial, self.settings, slots).run()
            commit = asyncio.to_thread(self.store.commit, file, partial.fd)
            self.held[file.sha256] = await unbroken(commit)
        except StoreError:
            with suppress(OSError):
                partial.discard()
            raise
        finally:
            del self.partials[file.sha256]
            if file.sha256 not in self.held:
                partial.close()

    def _tell(self) -> None:
        for sha256, partial in self.partials.items():
            self.ways[sha256].done = partial.done
            self.report(self.ways[sha256])
