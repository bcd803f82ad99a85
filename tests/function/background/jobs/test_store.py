"""Jobs in both stores: a name is taken once, urgent ones come first, a worker is replaced."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
from redis.asyncio import Redis

from function.admission.account import Receipt
from function.background.in_memory import InMemoryRecords
from function.background.jobs.files import (
    FileBudget,
    InMemoryJobFiles,
    JobFilesError,
    NoSpaceError,
    ObjectJobFiles,
)
from function.background.jobs.job import (
    Callback,
    CallbackState,
    Job,
    JobItem,
    JobSpec,
    JobState,
    outcome,
)
from function.background.jobs.redis_files import RedisJobFiles
from function.background.jobs.store import JOBS, JobStore, JobStoreFullError
from function.background.records import RecordStoreError
from function.background.redis_records import RedisRecords
from function.request_context import Lane
from function.storage.storage import Storage

LANES, PLENTY = list(Lane), FileBudget(10**7)
HOOK = Callback("https://example.org/hook", "whsec_" + "A" * 32)


def spec(name="a", **changes):
    return replace(JobSpec(name, "ann", "digest", f"at-{name}", Lane.BULK, 1.5), **changes)


@pytest.fixture
def shared(redis_records):
    return JobStore(redis_records(JOBS))


@pytest.fixture
def store(records):
    return JobStore(records(JOBS))


async def opened(store, *specs, limit=100):
    return [await store.open(each, limit, 60) for each in specs]


async def test_a_name_is_taken_once_and_the_job_comes_back_as_it_was(store):
    whole = spec(
        sources=2,
        targets=3,
        like=1,
        options={"faces": "like", "format": "webp", "quality": 80},
        outputs=("gs://b/1", "gs://b/2", "gs://b/3"),
        prices=(1, 2, 3),
        receipt=Receipt(4, 2, 1000, 2000),
        callback=HOOK,
        request_id="r",
        trace="t",
    )
    first, second = await opened(store, whole, replace(whole, digest="another"))
    assert (first.new, second.new) == (True, False)
    assert first.job == second.job == await store.get(whole.key)
    assert first.job.spec == whole
    assert first.job.items == (JobItem(), JobItem(), JobItem())
    assert (await opened(store, replace(whole, subject="bob")))[0].new


async def test_of_a_hundred_jobs_of_one_name_one_is_new(store):
    found = await asyncio.gather(*(store.open(spec(), 100, 60) for _ in range(100)))
    assert [each.new for each in found].count(True) == 1


async def test_urgent_jobs_come_first_and_equals_in_their_order(store):
    names = [("a", Lane.BULK), ("b", Lane.STANDARD), ("c", Lane.BULK), ("d", Lane.INTERACTIVE)]
    for name, lane in names:
        await opened(store, spec(name, lane=lane))
        await asyncio.sleep(0.002)
    assert [await store.ahead(spec(name).key) for name in "dbac"] == [0, 1, 2, 3]
    taken = [await store.take(LANES, 30) for _ in range(5)]
    assert [each and each.job.spec.id for each in taken] == ["d", "b", "a", "c", None]
    assert await store.ahead(spec("a").key) is None


async def test_jobs_of_a_closed_lane_wait(store):
    await opened(store, spec("a"), spec("b", lane=Lane.STANDARD))
    assert (await store.take([Lane.STANDARD], 30)).job.spec.id == "b"
    assert await store.take([Lane.STANDARD], 30) is None
    assert await store.take([], 30) is None
    assert (await store.take(LANES, 30)).job.spec.id == "a"


async def test_a_worker_that_falls_silent_is_replaced_and_changes_nothing_any_more(store):
    await opened(store, spec())
    first = await store.take(LANES, 0.05)
    assert await store.take(LANES, 30) is None
    await asyncio.sleep(0.1)
    second = await store.take(LANES, 30)
    assert second.token != first.token
    assert second.job.tries == 2
    key, item = spec().key, JobItem(JobState.SUCCEEDED, {"bytes": 1})
    assert not await store.renew(key, first.token, 30)
    assert not await store.mark(key, first.token, 0, item)
    assert not await store.finish(key, first.token, JobState.FAILED, [], 60)
    assert not await store.release(key, first.token, 0)
    assert (await store.get(key)).items == (JobItem(),)
    assert await store.mark(key, second.token, 0, item)
    assert await store.finish(key, second.token, JobState.SUCCEEDED, [], 60)
    job = await store.get(key)
    assert (job.state, job.items) == (JobState.SUCCEEDED, (item,))


async def test_a_job_ends_together_with_its_targets(store):
    await opened(store, spec(targets=3))
    taken, key = await store.take(LANES, 30), spec().key
    await store.mark(key, taken.token, 1, JobItem(JobState.RUNNING))
    items = [JobItem(JobState.SUCCEEDED, {"bytes": at}) for at in range(3)]
    assert not await store.finish(key, "another", JobState.SUCCEEDED, items, 60)
    assert (await store.get(key)).items == (JobItem(), JobItem(JobState.RUNNING), JobItem())
    assert await store.finish(key, taken.token, JobState.SUCCEEDED, items, 60)
    job = await store.get(key)
    assert (job.state, job.items) == (JobState.SUCCEEDED, tuple(items))
    assert not await store.mark(key, taken.token, 1, JobItem(JobState.RUNNING))


async def test_a_job_is_released_together_with_its_targets(store):
    await opened(store, spec(targets=2))
    taken, key = await store.take(LANES, 30), spec().key
    items = [JobItem(JobState.SUCCEEDED, {"bytes": 1}), JobItem()]
    assert not await store.release(key, "another", 0.0, items)
    assert await store.release(key, taken.token, 0.0, items)
    assert (await store.get(key)).items == tuple(items)
    again = await store.take(LANES, 30)
    assert again.job.items == tuple(items)
    assert await store.release(key, again.token, 0.0)
    assert (await store.get(key)).items == tuple(items)


async def test_a_worker_may_finish_a_job_twice_and_nobody_else_may(store):
    await opened(store, spec(callback=HOOK))
    taken, key = await store.take(LANES, 30), spec().key
    for _ in range(2):
        assert await store.finish(key, taken.token, JobState.SUCCEEDED, [], 60)
    version = (await store.get(key)).version
    assert not await store.finish(key, "another", JobState.FAILED, [], 60)
    assert not await store.finish(key, "", JobState.FAILED, [], 60)
    await store.end(key, 60)
    assert (await store.get(key)).state is JobState.DELETED
    assert await store.finish(key, taken.token, JobState.SUCCEEDED, [], 60)
    assert (await store.get(key)).state is JobState.DELETED
    assert (await store.get(key)).version == version + 1


async def test_a_worker_that_renews_keeps_the_job(store):
    await opened(store, spec())
    taken = await store.take(LANES, 0.3)
    for _ in range(4):
        await asyncio.sleep(0.1)
        assert await store.renew(spec().key, taken.token, 0.3)
    assert await store.take(LANES, 30) is None


async def test_a_released_job_can_be_taken_at_once_or_after_a_while(store):
    await opened(store, spec())
    first = await store.take(LANES, 30)
    assert await store.release(spec().key, first.token, None)
    second = await store.take(LANES, 30)
    assert second.job.tries == 1  # the first was none
    assert await store.release(spec().key, second.token, 0.15)
    assert (await store.get(spec().key)).state is JobState.QUEUED
    assert await store.take(LANES, 30) is None
    await asyncio.sleep(0.2)
    assert (await store.take(LANES, 30)).job.tries == 2


async def test_no_more_jobs_are_opened_than_the_limit(store):
    await opened(store, spec("a"), spec("b"), limit=2)
    with pytest.raises(JobStoreFullError):
        await opened(store, spec("c"), limit=2)
    assert not (await opened(store, spec("a"), limit=2))[0].new
    await store.end(spec("a").key, 60)
    assert (await opened(store, spec("c"), limit=2))[0].new


async def test_an_open_job_is_cancelled_and_one_that_is_done_is_deleted(store):
    await opened(store, spec("a"), spec("b"))
    taken = await store.take(LANES, 30)
    await store.mark(taken.job.spec.key, taken.token, 0, JobItem(JobState.SUCCEEDED, {"bytes": 1}))
    ended = await store.end(taken.job.spec.key, 60)
    assert (ended.before, ended.job.state) == (JobState.RUNNING, JobState.CANCELLED)
    assert not await store.renew(taken.job.spec.key, taken.token, 30)
    other = await store.take(LANES, 30)
    key = other.job.spec.key
    await store.mark(key, other.token, 0, JobItem(JobState.SUCCEEDED, {"bytes": 1}))
    await store.finish(key, other.token, JobState.SUCCEEDED, [], 60)
    ended = await store.end(key, 60)
    assert (ended.before, ended.job.state) == (JobState.SUCCEEDED, JobState.DELETED)
    assert ended.job.items == (JobItem(),)
    assert await store.end("nothing", 60) is None
    assert await store.take(LANES, 30) is None


async def test_an_owner_sees_its_own_jobs_the_newest_first(store):
    for name, subject in (("a", "ann"), ("b", "bob"), ("c", "ann"), ("d", "ann")):
        await opened(store, spec(name, subject=subject))
        await asyncio.sleep(0.002)
    mine = spec().owner
    assert [job.spec.id for job in await store.of(mine, 0, 10)] == ["d", "c", "a"]
    assert [job.spec.id for job in await store.of(mine, 1, 1)] == ["c"]
    assert {job.spec.id for job in await store.of(None, 0, 10)} == set("abcd")


async def test_a_callback_is_due_when_the_job_has_ended_and_again_when_it_failed(store):
    await opened(store, spec(callback=HOOK))
    taken = await store.take(LANES, 30)
    assert await store.call(30) is None
    await store.finish(spec().key, taken.token, JobState.SUCCEEDED, [], 60)
    job = await store.call(0.1)
    assert (job.call, job.calls) == (CallbackState.PENDING, 1)
    assert await store.call(30) is None
    await asyncio.sleep(0.15)
    assert (await store.call(30)).calls == 2  # who had it fell silent
    await store.called(spec().key, CallbackState.PENDING, "it answers 500", 0.1)
    assert (await store.get(spec().key)).call_note == "it answers 500"
    assert await store.call(30) is None
    await asyncio.sleep(0.15)
    assert (await store.call(30)).calls == 3
    await store.called(spec().key, CallbackState.DELIVERED, "", 0)
    assert (await store.get(spec().key)).call is CallbackState.DELIVERED
    assert (await store.counts())["due"] == 0


async def test_a_job_whose_time_is_over_is_found_and_forgotten(store):
    await store.open(spec("a"), 10, 0.05)
    await store.open(spec("b"), 10, 60)
    await asyncio.sleep(0.1)
    assert [job.spec.id for job in await store.over()] == ["a"]
    await store.forget(spec("a").key)
    assert await store.over() == []
    assert await store.get(spec("a").key) is None
    assert await store.counts() == {"queued": 1, "running": 0, "due": 0}
    assert (await store.take(LANES, 30)).job.spec.id == "b"


async def test_every_change_is_a_new_version(store):
    await opened(store, spec())
    versions = [(await store.get(spec().key)).version]
    taken = await store.take(LANES, 30)
    versions.append((await store.get(spec().key)).version)
    await store.mark(spec().key, taken.token, 0, JobItem(JobState.RUNNING))
    versions.append((await store.get(spec().key)).version)
    await store.finish(spec().key, taken.token, JobState.FAILED, [], 60)
    versions.append((await store.get(spec().key)).version)
    assert versions == sorted(set(versions))


async def test_both_stores_do_the_same_whatever_happens_to_jobs(shared):
    """Random calls, played through both; times are far enough apart not to matter."""
    rng, memory = random.Random(7), JobStore(InMemoryRecords())
    tokens = {}
    for step in range(400):
        name, lane = rng.choice("abcdefgh"), rng.choice(LANES)
        key, what = spec(name).key, rng.choice(("open", "take", "mark", "finish", "release", "end"))
        answers = []
        for store in (memory, shared):
            token = tokens.get((store, key), "")
            match what:
                case "open":
                    try:
                        found = await store.open(spec(name, lane=lane), 5, 1000)
                        answers.append(found.new)
                    except JobStoreFullError:
                        answers.append("full")
                case "take":
                    lanes = LANES[: 1 + step % 3]
                    taken = await store.take(lanes, 1000)
                    answers.append(taken and taken.job.spec.id)
                    if taken:
                        tokens[store, taken.job.spec.key] = taken.token
                case "mark":
                    answers.append(await store.mark(key, token, 0, JobItem(JobState.RUNNING)))
                case "finish":
                    answers.append(await store.finish(key, token, JobState.FAILED, [], 1000))
                case "release":
                    answers.append(await store.release(key, token, None))
                case "end":
                    ended = await store.end(key, 1000)
                    answers.append(ended and (ended.before, ended.job.state))
                    if step % 3 == 0:
                        await store.forget(key)
            answers.append(_facts(await store.get(key)))
            answers.append(await store.counts())
        half = len(answers) // 2
        assert answers[:half] == answers[half:], (step, what)
        await asyncio.sleep(0.002)  # so that no two jobs came in one millisecond


def _facts(job: Job | None):
    return job and (job.state, job.items, job.version, job.tries, job.spec.lane)


async def test_without_redis_jobs_raise_an_error_of_the_store(free_port):
    store = JobStore(RedisRecords(f"redis://127.0.0.1:{free_port}/0", 0.5, JOBS))
    with pytest.raises(RecordStoreError):
        await store.get("a")
    await store.close()


async def test_no_key_names_anybody(shared, lasting_redis):
    await opened(shared, spec("my-job", subject="ann@example.org"))
    async with Redis.from_url(lasting_redis.url) as redis:
        keys = await redis.keys("*")
    assert keys
    assert not [key for key in keys if b"ann" in key or b"my-job" in key]


@pytest.fixture(params=["memory", "redis", "folder", "bucket"])
async def files(request, tmp_path):
    match request.param:
        case "memory":
            files = InMemoryJobFiles(PLENTY)
        case "redis":
            files = RedisJobFiles(request.getfixturevalue("lasting_redis").url, 2.0, PLENTY)
        case "folder":
            files = ObjectJobFiles(Storage(folders=(tmp_path,)), f"{tmp_path.as_uri()}/", 10**6)
        case "bucket":
            request.getfixturevalue("cloud")
            files = ObjectJobFiles(Storage(), "gs://uploads/jobs/", 10**6)
    yield files
    await files.close()


async def test_files_are_kept_until_they_are_dropped(files):
    data = random.Random(1).randbytes(700_000)
    await files.put("x/source-0", b"before", 60)
    await files.put("x/source-0", data, 60)
    kept = await files.get("x/source-0")
    pieces = [piece async for piece in kept.pieces]
    assert (kept.size, b"".join(pieces)) == (len(data), data)
    assert max(map(len, pieces)) < len(data)
    assert await files.get("x/source-1") is None
    await files.drop(["x/source-0", "x/source-1"])
    assert await files.get("x/source-0") is None


async def test_files_in_memory_have_a_limit():
    files = InMemoryJobFiles(FileBudget(100))
    await files.put("a", bytes(60), 60)
    with pytest.raises(NoSpaceError):
        await files.put("b", bytes(41), 60)
    await files.put("a", bytes(100), 60)
    await files.drop(["a"])
    assert files.held == 0


async def test_redis_forgets_files_by_itself(lasting_redis):
    files = RedisJobFiles(lasting_redis.url, 2.0, PLENTY)
    await files.put("y", b"photo", 0.05)
    await asyncio.sleep(0.1)
    assert await files.get("y") is None
    await files.close()


async def test_without_redis_files_raise_an_error_of_their_own(free_port):
    files = RedisJobFiles(f"redis://127.0.0.1:{free_port}/0", 0.5, PLENTY)
    with pytest.raises(JobFilesError):
        await files.put("a", b"photo", 60)
    await files.close()


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        ([JobState.SUCCEEDED, JobState.SUCCEEDED], JobState.SUCCEEDED),
        ([JobState.SUCCEEDED, JobState.FAILED], JobState.PARTLY),
        ([JobState.FAILED, JobState.FAILED], JobState.FAILED),
    ],
)
def test_the_state_of_a_job_follows_from_its_targets(states, whole):
    assert outcome(tuple(map(JobItem, states))) is whole
