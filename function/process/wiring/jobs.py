"""What keeps and runs jobs, from settings; what needs an extra is imported when it is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from function.background.in_memory import InMemoryRecords
from function.background.jobs.files import FileBudget, InMemoryJobFiles, ObjectJobFiles
from function.background.jobs.store import JOBS, JobStore
from function.extras import needing_redis
from function.storage.storage import Storage
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from function.background.jobs.files import JobFiles
    from function.settings.access import RedisSettings
    from function.settings.background import JobSettings

_LARGEST = 1024**3
"""The most bytes that a result may have: more than any format gives for the most pixels."""


def build_job_store(redis: RedisSettings) -> JobStore:
    """Where jobs are written down.

    Raises:
        SettingsError: Redis cannot be used.
    """
    if (url := jobs_redis_url(redis)) is None:
        return JobStore(InMemoryRecords())
    with needing_redis(_setting(redis)):
        from function.background.redis_records import RedisRecords

        return JobStore(RedisRecords(url, redis.redis_timeout_s, JOBS))


def build_job_files(
    jobs: JobSettings, redis: RedisSettings, *, timeout_s: float, body_bytes: int
) -> JobFiles:
    """Where the photos and results of jobs are kept. No URI of a request leads to it.

    Args:
        jobs: where that is, and how much it may take.
        redis: keeps them where the settings name no other place.
        timeout_s: how long one call to a bucket or a folder may take.
        body_bytes: the most that one request may bring.

    Raises:
        SettingsError: the folder cannot be made, or Redis cannot be used.
    """
    if jobs.job_photos:
        return _object_files(jobs.job_photos, timeout_s)
    at_once = min(body_bytes, jobs.job_bytes)
    each = jobs.job_caller_bytes or max(jobs.job_bytes // 2, at_once)
    budget = FileBudget(jobs.job_bytes, each)
    if (url := jobs_redis_url(redis)) is None:
        return InMemoryJobFiles(budget)
    with needing_redis(_setting(redis)):
        from function.background.jobs.redis_files import RedisJobFiles

        return RedisJobFiles(url, redis.redis_timeout_s, budget)


def jobs_redis_url(redis: RedisSettings) -> str | None:
    """The Redis that has the jobs: one of their own, or the one that everything is in."""
    return redis.jobs_redis_url or redis.redis_url


def _object_files(base: str, timeout_s: float) -> JobFiles:
    folders = []
    if base.startswith("file:"):
        folders = [Path(url2pathname(urlsplit(base).path))]
        try:
            folders[0].mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError([f"EMBER_JOB_PHOTOS is {base}: {error.strerror}."]) from None
    storage = Storage(folders=folders, timeout_s=timeout_s)
    return ObjectJobFiles(storage, base.rstrip("/") + "/", _LARGEST)


def _setting(redis: RedisSettings) -> str:
    return "EMBER_JOBS_REDIS_URL" if redis.jobs_redis_url else "EMBER_REDIS_URL"
