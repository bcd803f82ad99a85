"""From settings to the works; what needs an extra is imported when it is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from function.extras import needing_redis
from function.jobs import book as books
from function.jobs import shelf as shelves
from function.jobs.works import Terms, Works
from function.storage.storage import Storage
from warmup.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from function.admission.account import Receipt
    from function.jobs.book import Book
    from function.jobs.shelf import Shelf
    from function.orders import Swap
    from function.settings import Settings
    from function.turn import Lane

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
) -> Works:
    """The works.

    Args:
        settings: the effective settings.
        storage: where results and callbacks go.
        swap: makes a swap.
        refund: gives back tokens.
        lanes: see `Works`.
        places: how many targets are worked on at once.

    Raises:
        SettingsError: something for them is missing or makes no sense.
    """
    terms = Terms(settings.job_lease_s, settings.job_keep_s, places)
    return Works(
        book(settings),
        shelf(settings),
        storage=storage,
        swap=swap,
        refund=refund,
        lanes=lanes,
        terms=terms,
    )


def book(settings: Settings) -> Book:
    """The book.

    Raises:
        SettingsError: Redis cannot be used.
    """
    if (url := redis_url(settings)) is None:
        return books.Memory()
    with needing_redis(_setting(settings)):
        from function.jobs.shared import SharedBook

        return SharedBook(url, settings.redis_timeout_s)


def shelf(settings: Settings) -> Shelf:
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
        return shelves.Placed(storage, base.rstrip("/") + "/", _LARGEST)
    one = min(settings.max_body_bytes, settings.job_bytes)  # what one request may bring
    each = settings.job_caller_bytes or max(settings.job_bytes // 2, one)
    budget = shelves.Budget(settings.job_bytes, each)
    if (url := redis_url(settings)) is None:
        return shelves.Memory(budget)
    with needing_redis(_setting(settings)):
        from function.jobs.shared import SharedShelf

        return SharedShelf(url, settings.redis_timeout_s, budget)


def redis_url(settings: Settings) -> str | None:
    """The Redis that has the jobs: one of their own, or the one that everything is in."""
    return settings.jobs_redis_url or settings.redis_url


def _setting(settings: Settings) -> str:
    return "EMBER_JOBS_REDIS_URL" if settings.jobs_redis_url else "EMBER_REDIS_URL"
