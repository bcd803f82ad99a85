"""From settings to the works; what needs an extra is imported when it is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from function.background.jobs import files as shelves
from function.background.jobs import store as books
from function.background.jobs.runner import JobRunner, RunnerSettings
from function.extras import needing_redis
from function.storage.storage import Storage
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from function.admission.account import Receipt
    from function.background.jobs.files import JobFiles
    from function.background.jobs.store import JobStore
    from function.request_context import Lane
    from function.requests import Swap
    from function.settings import Settings

_LARGEST = 1024**3
"""The most bytes that a result may have: more than any format gives for the most pixels."""


def works(
    settings: Settings,
    *,
    storage: Storage,
    swap: Swap,
    refund: Callable[[str, Receipt], None],
    lanes: Callable[[], Sequence[Lane]],
    places: int,
) -> JobRunner:
    """The works.

    Args:
        settings: the effective settings.
        storage: where results and callbacks go.
        swap: makes a swap.
        refund: gives back tokens.
        lanes: see `JobRunner`.
        places: how many targets are worked on at once.

    Raises:
        SettingsError: something for them is missing or makes no sense.
    """
    terms = RunnerSettings(settings.job_lease_s, settings.job_keep_s, places)
    return JobRunner(
        book(settings),
        shelf(settings),
        storage=storage,
        swap=swap,
        refund=refund,
        lanes=lanes,
        settings=terms,
    )


def book(settings: Settings) -> JobStore:
    """The book.

    Raises:
        SettingsError: Redis cannot be used.
    """
    if (url := redis_url(settings)) is None:
        return books.InMemoryJobStore()
    with needing_redis(_setting(settings)):
        from function.background.jobs.redis_store import RedisJobStore

        return RedisJobStore(url, settings.redis_timeout_s)


def shelf(settings: Settings) -> JobFiles:
    """The shelf. No URI of a request leads to it.

    Raises:
        SettingsError: its folder cannot be made, or Redis cannot be used.
    """
    if base := settings.job_photos:
        folders = []
        if base.startswith("file:"):
            folders = [Path(url2pathname(urlsplit(base).path))]
            try:
                folders[0].mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                reason = f"EMBER_JOB_PHOTOS is {base}: {error.strerror}."
                raise SettingsError([reason]) from None
        storage = Storage(folders=folders, timeout_s=settings.uri_timeout_s)
        return shelves.ObjectJobFiles(storage, base.rstrip("/") + "/", _LARGEST)
    one = min(settings.max_body_bytes, settings.job_bytes)  # what one request may bring
    each = settings.job_caller_bytes or max(settings.job_bytes // 2, one)
    budget = shelves.FileBudget(settings.job_bytes, each)
    if (url := redis_url(settings)) is None:
        return shelves.InMemoryJobFiles(budget)
    with needing_redis(_setting(settings)):
        from function.background.jobs.redis_store import RedisJobFiles

        return RedisJobFiles(url, settings.redis_timeout_s, budget)


def redis_url(settings: Settings) -> str | None:
    """The Redis that has the jobs: one of their own, or the one that everything is in."""
    return settings.jobs_redis_url or settings.redis_url


def _setting(settings: Settings) -> str:
    return "EMBER_JOBS_REDIS_URL" if settings.jobs_redis_url else "EMBER_REDIS_URL"
