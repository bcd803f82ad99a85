"""`ember jobs`, against a real Redis."""

from __future__ import annotations

import json

import pytest

from function.background.jobs.files import FileBudget
from function.background.jobs.job import JobItem, JobSpec, JobState
from function.background.jobs.redis_files import RedisJobFiles
from function.background.jobs.store import JOBS, JobStore
from function.background.redis_records import RedisRecords
from function.request_context import Lane
from tests.function.cli.test_keys import ember


@pytest.fixture
async def filled(redis):
    """A Redis with three jobs: two have ended, one of them of ann; its address."""
    book, shelf = (
        JobStore(RedisRecords(redis.url, 2.0, JOBS)),
        RedisJobFiles(redis.url, 2.0, FileBudget(10**6)),
    )
    for name, subject in (("a", "ann"), ("b", None), ("c", "bob")):
        spec = JobSpec(name, subject, "d", f"at-{name}", Lane.BULK, 1e9)
        await book.open(spec, 10, 3600)
        for photo in (*spec.inputs, *spec.results):
            await shelf.put(photo, b"photo", 3600)
        if name != "c":
            taken = await book.take([Lane.BULK], 60)
            await book.mark(spec.key, taken.token, 0, JobItem(JobState.SUCCEEDED, {"bytes": 1}))
            await book.finish(spec.key, taken.token, JobState.SUCCEEDED, [], 3600)
    await book.close()
    yield redis.url
    await shelf.close()


async def photos(url):
    shelf = RedisJobFiles(url, 2.0, FileBudget(10**6))
    try:
        names = [f"at-{name}/result-0" for name in "abc"]
        return [name[3] for name in names if await shelf.get(name)]
    finally:
        await shelf.close()


async def test_jobs_are_listed_and_shown(filled):
    lines = ember("jobs", "ls", EMBER_REDIS_URL=filled).splitlines()
    assert len(lines) == 3
    assert any("succeeded" in line and "ann" in line and line.endswith("a") for line in lines)
    (line,) = ember("jobs", "ls", "--json", "--subject", "bob", EMBER_REDIS_URL=filled).splitlines()
    assert json.loads(line)["state"] == "queued"
    told = json.loads(ember("jobs", "show", "a", "--subject", "ann", EMBER_REDIS_URL=filled))
    assert (told["subject"], told["progress"]) == ("ann", {"done": 1, "total": 1})
    assert json.loads(ember("jobs", "show", "b", EMBER_REDIS_URL=filled))["subject"] is None
    assert "no such job" in ember("jobs", "show", "a", code=65, EMBER_REDIS_URL=filled)


async def test_purge_deletes_what_has_ended_with_its_photos(filled):
    words = ("jobs", "purge", "--yes")
    assert ember(*words, "--older", "1h", EMBER_REDIS_URL=filled) == "0 jobs deleted.\n"
    assert ember(*words, "--subject", "ann", EMBER_REDIS_URL=filled) == "1 job deleted.\n"
    assert await photos(filled) == ["b", "c"]
    assert ember(*words, EMBER_REDIS_URL=filled) == "1 job deleted.\n"
    assert await photos(filled) == ["c"]
    assert ember(*words, "--open", EMBER_REDIS_URL=filled) == "1 job deleted.\n"
    assert await photos(filled) == []
    assert ember("jobs", "ls", EMBER_REDIS_URL=filled) == ""


def test_without_a_redis_that_answers_it_says_what_to_do(free_port):
    assert "over HTTP" in ember("jobs", "ls", code=78)
    url = f"redis://127.0.0.1:{free_port}/0"
    assert "cannot be reached" in ember("jobs", "ls", code=69, EMBER_REDIS_URL=url)


@pytest.mark.parametrize("age", ["24", "h", "1w", "-1h"])
def test_an_age_that_is_none_is_refused(age):
    assert "is no age" in ember("jobs", "purge", f"--older={age}", code=2)
