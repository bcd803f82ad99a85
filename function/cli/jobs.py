"""`ember jobs`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from function.background.facts import moment
from function.background.jobs import report
from function.background.jobs.files import JobFilesError
from function.background.jobs.job import key_of, owner_of
from function.background.records import RecordStoreError
from function.cli.failure import Failure
from function.exits import Exit
from function.process.wiring.jobs import build_job_files, build_job_store, jobs_redis_url
from function.settings import load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from function.background.jobs.files import JobFiles
    from function.background.jobs.job import Job
    from function.background.jobs.store import JobStore

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_AT_ONCE = 500


class _Age(click.ParamType[float]):
    """A length of time like 30m, in seconds."""

    name = "age"

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read it."""
        match = re.fullmatch(r"([0-9]+)([smhd])", str(value))
        if not match:
            self.fail(f"{value} is no age like 90s, 30m, 24h or 7d.", param, ctx)
        return int(match[1]) * _UNITS[match[2]]


@click.group()
def jobs() -> None:
    """See and strike out the jobs in the Redis that EMBER_JOBS_REDIS_URL or EMBER_REDIS_URL names.

    Jobs of a server without Redis are in its memory, and are seen only over HTTP.
    """


@jobs.command("ls")
@click.option("--subject", help="Only the jobs of this caller.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON for each job.")
def list_(subject: str | None, as_json: bool) -> None:
    """List jobs."""

    async def work() -> None:
        async with opened() as (store, _):
            for job in await _all(store, subject):
                click.echo(json.dumps(report.of_job(job)) if as_json else _line(job))

    _run(work())


@jobs.command()
@click.argument("id")
@click.option("--subject", help="Whose it is; where nobody says who he is, leave it out.")
def show(id: str, subject: str | None) -> None:  # noqa: A002
    """Tell everything about a job, as JSON."""

    async def work() -> Job | None:
        async with opened() as (store, _):
            return await store.get(key_of(subject, id))

    job: Job | None = _run(work())
    if job is None:
        message = "There is no such job; `ember jobs ls` has those that there are."
        raise Failure(message, Exit.BAD_INPUT)
    click.echo(json.dumps(report.of_job(job) | {"subject": job.spec.subject}, indent=2))


@jobs.command()
@click.option("--older", type=_Age(), help="Only what last changed so long ago, like 24h.")
@click.option("--subject", help="Only the jobs of this caller.")
@click.option("--open", "also_open", is_flag=True, help="Also those that have not ended.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(older: float | None, subject: str | None, also_open: bool, yes: bool) -> None:
    """Delete jobs that have ended, with all their photos.

    Without --older and --subject that is all of them.
    """

    async def chosen(store: JobStore) -> list[Job]:
        until = time.time() - (older or 0.0)
        found = await _all(store, subject)
        return [job for job in found if job.changed <= until and (also_open or not job.state.open)]

    async def count() -> int:
        async with opened() as (store, _):
            return len(await chosen(store))

    async def work() -> int:
        async with opened() as (store, files):
            found = await chosen(store)
            for job in found:
                if job.state.open:
                    await store.end(job.spec.key, 1.0)  # whoever works on it stops
                await files.drop(job.kept)
                await store.forget(job.spec.key)
            return len(found)

    if not yes:
        click.confirm(f"Delete {_counted(_run(count()))} for good?", abort=True)
    click.echo(f"{_counted(_run(work()))} deleted.")


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[JobStore, JobFiles]]:
    """The store of jobs and their files, as the settings have them.

    Raises:
        Failure: they are not in a Redis.
    """
    settings = load(os.environ)
    if jobs_redis_url(settings.redis) is None:
        raise Failure(
            "EMBER_REDIS_URL is not set: without Redis, jobs are in the memory of a server and are"
            " seen only over HTTP, at /v1/jobs.",
            Exit.CONFIG,
        )
    store = build_job_store(settings.redis)
    files = build_job_files(
        settings.jobs,
        settings.redis,
        timeout_s=settings.uris.uri_timeout_s,
        body_bytes=settings.requests.max_body_bytes,
    )
    try:
        yield store, files
    finally:
        await store.close()
        await files.close()


async def _all(store: JobStore, subject: str | None) -> list[Job]:
    """All jobs, or those of a caller."""
    owner = None if subject is None else owner_of(subject)
    found: list[Job] = []
    while more := await store.of(owner, len(found), _AT_ONCE):
        found += more
    return found


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return asyncio.run(work)
    except (RecordStoreError, JobFilesError) as error:
        raise Failure(f"The jobs cannot be reached: {error}.", Exit.UNAVAILABLE) from None


def _line(job: Job) -> str:
    """A job in one line for people."""
    progress = f"{job.done}/{job.spec.targets}"
    whose = job.spec.subject or "-"
    return (
        f"{moment(job.changed)}  {job.state:<9}  {progress:>5}"
        f"  {job.spec.lane:<11}  {whose}  {job.spec.id}"
    )


def _counted(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
