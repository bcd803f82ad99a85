"""All files of some models into the store, proven; what is there already costs next to nothing.

Nothing of the network is imported, and no event loop runs, unless something must be fetched.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from warmup.failures import DamagedError, StoreError, UnavailableError
from warmup.models import lock
from warmup.models.progress import FetchProgress
from warmup.models.store import Held, Store, default_root

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from warmup.models.file import File
    from warmup.models.manifest import Model
    from warmup.settings.settings import StoreSettings

log = logging.getLogger("ember.prefetch")

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
    settings: StoreSettings,
    *,
    report: Callable[[FetchProgress], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> Ready:
    """Make sure that every file of the models is here and right.

    It blocks; a server calls it in a thread. A file that is fetched by another process at the same
    time is waited for. A damaged file in the store is fetched anew. What is right in the shared
    store is used from there.

    Args:
        models: their graphs, and those variants that are wanted.
        settings: store, offline, and how to fetch.
        report: called with what has changed, in this thread or others, a few times a second.
        stop: end early when it is set.

    Raises:
        DamagedError: a source, or a file in its own place, is not what the manifest says.
        UnavailableError: a source does not give its file, or it is remote and we are offline.
        StoreError: the store cannot take it.
        StoppedError: `stop` was set.
    """
    store, shared = open_store(settings), open_shared(settings)
    files = {file.sha256: file for model in models for file in model.files}
    ways = {key: FetchProgress(file.name, file.size) for key, file in files.items()}
    held: dict[str, Held] = {}

    def find(file: File) -> Held | None:
        return _found_shared(shared, file) or _found(store, file)

    def look(file: File) -> None:
        report(ways[file.sha256])
        if found := find(file):
            held[file.sha256] = found
            ways[file.sha256].end()
            report(ways[file.sha256])

    try:
        with ThreadPoolExecutor(_HASHERS, "verify") as pool:
            list(pool.map(look, files.values()))
        if missing := [file for file in files.values() if file.sha256 not in held]:
            _may_fetch(missing, store, settings)
            from warmup.models.fetch_job import FetchJob, run

            keep = frozenset(files)
            job = FetchJob(store, settings.fetch, find, shared, keep, ways, report, held)
            run(job, missing, stop)
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


def open_store(settings: StoreSettings) -> Store:
    """The store that the settings name."""
    return Store(settings.store or default_root(), settings.store_quota)


def open_shared(settings: StoreSettings) -> Store | None:
    """The store that something else fills, if the settings name one that is not our own."""
    root = settings.shared_store
    if root is None or root.resolve() == open_store(settings).root.resolve():
        return None
    return Store(root, read_only=True)


def _found_shared(shared: Store | None, file: File) -> Held | None:
    """The file if the shared store has it and it is right; None if our own has to have it."""
    if shared is None or file.path:
        return None
    try:
        return shared.find(file)
    except (DamagedError, StoreError) as error:
        log.warning("not used from the shared store", extra={"file": file.name, "why": str(error)})
        return None


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


def _may_fetch(missing: list[File], store: Store, settings: StoreSettings) -> None:
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
