"""Both books: a name is taken once, urgent jobs come first, a silent worker is replaced."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
from redis.asyncio import Redis

from function.admission.account import Receipt
from function.background.jobs.files import FileBudget, JobFilesError, NoSpaceError, ObjectJobFiles
from function.background.jobs.files import InMemoryJobFiles as MemoryShelf
from function.background.jobs.job import Call, Callback, Job, JobItem, JobSpec, JobState, outcome
from function.background.jobs.redis_store import RedisJobFiles, RedisJobStore
from function.background.jobs.store import InMemoryJobStore, JobStoreError, JobStoreFullError
from function.request_context import Lane
from function.storage.storage import Storage

LANES, PLENTY = list(Lane), FileBudget(10**7)
HOOK = Callback("https://example.org/hook", "whsec_" + "A" * 32)


def spec(name="a", **changes):
    return replace(JobSpec(name, "ann", "digest", f"at-{name}", Lane.BULK, 1.5), **changes)


@pytest.fixture
async def shared(lasting_redis):
    book = RedisJobStore(lasting_redis.url, 2.0)
    async with Redis.from_url(lasting_redis.url) as redis:
        await redis.flushall()
    yield book
    await book.close()


@pytest.fixture(params=["memory", "redis"])
def book(request):
    return InMemoryJobStore() if request.param == "memory" else request.getfixturevalue("shared")


async def opened(book, *specs, limit=100):
    return [await book.open(each, limit, 60) for each in specs]


async def test_a_name_is_taken_once_and_the_job_comes_back_as_it_was(book):
    whole = spec(
        sources=2,
        targets=3,
        like=True,
        options={"faces": "like", "format": "webp", "quality": 80},
        outputs=("gs://b/1", "gs://b/2", "gs://b/3"),
        prices=(1, 2, 3),
        receipt=Receipt(4, 2, 1000, 2000),
        callback=HOOK,
        request_id="r",
        trace="t",
    )
    first, second = await opened(book, whole, replace(whole, digest="another"))
    assert (first.new, second.new) == (True, False)
    assert first.job == second.job == await book.get(whole.key)
    assert first.job.spec == whole
    assert first.job.items == (JobItem(), JobItem(), JobItem())
    assert (await opened(book, replace(whole, subject="bob")))[0].new


async def test_of_a_hundred_at_once_one_is_new(book):
    found = await asyncio.gather(*(book.open(spec(), 100, 60) for _ in range(100)))
    assert [each.new for each in found].count(True) == 1


async def test_urgent_jobs_come_first_and_equals_in_their_order(book):
    names = [("a", Lane.BULK), ("b", Lane.STANDARD), ("c", Lane.BULK), ("d", Lane.INTERACTIVE)]
    for name, lane in names:
        await opened(book, spec(name, lane=lane))
        await asyncio.sleep(0.002)
    assert [await book.ahead(spec(name).key) for name in "dbac"] == [0, 1, 2, 3]
    taken = [await book.take(LANES, 30) for _ in range(5)]
    assert [each and each.job.spec.id for each in taken] == ["d", "b", "a", "c", None]
    assert await book.ahead(spec("a").key) is None


async def test_jobs_of_a_lane_that_is_closed_wait(book):
    await opened(book, spec("a"), spec("b", lane=Lane.STANDARD))
    assert (await book.take([Lane.STANDARD], 30)).job.spec.id == "b"
    assert await book.take([Lane.STANDARD], 30) is None
    assert await book.take([], 30) is None
    assert (await book.take(LANES, 30)).job.spec.id == "a"


async def test_who_falls_silent_is_replaced_and_changes_nothing_any_more(book):
    await opened(book, spec())
    first = await book.take(LANES, 0.05)
    assert await book.take(LANES, 30) is None
    await asyncio.sleep(0.1)
    second = await book.take(LANES, 30)
    assert second.token != first.token
    assert second.job.tries == 2
    key, item = spec().key, JobItem(JobState.SUCCEEDED, {"bytes": 1})
    assert not await book.renew(key, first.token, 30)
    assert not await book.mark(key, first.token, 0, item)
    assert not await book.finish(key, first.token, JobState.FAILED, [], 60)
    assert not await book.release(key, first.token, 0)
    assert (await book.get(key)).items == (JobItem(),)
    assert await book.mark(key, second.token, 0, item)
    assert await book.finish(key, second.token, JobState.SUCCEEDED, [], 60)
    job = await book.get(key)
    assert (job.state, job.items) == (JobState.SUCCEEDED, (item,))


async def test_a_job_ends_together_with_its_targets(book):
    await opened(book, spec(targets=3))
    taken, key = await book.take(LANES, 30), spec().key
    await book.mark(key, taken.token, 1, JobItem(JobState.RUNNING))
    items = [JobItem(JobState.SUCCEEDED, {"bytes": at}) for at in range(3)]
    assert not await book.finish(key, "another", JobState.SUCCEEDED, items, 60)
    assert (await book.get(key)).items == (JobItem(), JobItem(JobState.RUNNING), JobItem())
    assert await book.finish(key, taken.token, JobState.SUCCEEDED, items, 60)
    job = await book.get(key)
    assert (job.state, job.items) == (JobState.SUCCEEDED, tuple(items))
    assert not await book.mark(key, taken.token, 1, JobItem(JobState.RUNNING))


async def test_a_job_is_given_up_together_with_its_targets(book):
    await opened(book, spec(targets=2))
    taken, key = await book.take(LANES, 30), spec().key
    items = [JobItem(JobState.SUCCEEDED, {"bytes": 1}), JobItem()]
    assert not await book.release(key, "another", 0.0, items)
    assert await book.release(key, taken.token, 0.0, items)
    assert (await book.get(key)).items == tuple(items)
    again = await book.take(LANES, 30)
    assert again.job.items == tuple(items)
    assert await book.release(key, again.token, 0.0)
    assert (await book.get(key)).items == tuple(items)


async def test_who_has_finished_may_say_so_again_and_nobody_else(book):
    await opened(book, spec(callback=HOOK))
    taken, key = await book.take(LANES, 30), spec().key
    for _ in range(2):
        assert await book.finish(key, taken.token, JobState.SUCCEEDED, [], 60)
    version = (await book.get(key)).version
    assert not await book.finish(key, "another", JobState.FAILED, [], 60)
    assert not await book.finish(key, "", JobState.FAILED, [], 60)
    await book.end(key, 60)
    assert (await book.get(key)).state is JobState.DELETED
    assert await book.finish(key, taken.token, JobState.SUCCEEDED, [], 60)
    assert (await book.get(key)).state is JobState.DELETED
    assert (await book.get(key)).version == version + 1


async def test_who_renews_keeps_it(book):
    await opened(book, spec())
    taken = await book.take(LANES, 0.3)
    for _ in range(4):
        await asyncio.sleep(0.1)
        assert await book.renew(spec().key, taken.token, 0.3)
    assert await book.take(LANES, 30) is None


async def test_what_is_given_up_is_anybodys_at_once_or_after_a_while(book):
    await opened(book, spec())
    first = await book.take(LANES, 30)
    assert await book.release(spec().key, first.token, None)
    second = await book.take(LANES, 30)
    assert second.job.tries == 1  # the first was none
    assert await book.release(spec().key, second.token, 0.15)
    assert (await book.get(spec().key)).state is JobState.QUEUED
    assert await book.take(LANES, 30) is None
    await asyncio.sleep(0.2)
    assert (await book.take(LANES, 30)).job.tries == 2


async def test_no_more_are_taken_than_there_is_room_for(book):
    await opened(book, spec("a"), spec("b"), limit=2)
    with pytest.raises(JobStoreFullError):
        await opened(book, spec("c"), limit=2)
    assert not (await opened(book, spec("a"), limit=2))[0].new
    await book.end(spec("a").key, 60)
    assert (await opened(book, spec("c"), limit=2))[0].new


async def test_what_is_open_is_cancelled_and_what_is_done_is_deleted(book):
    await opened(book, spec("a"), spec("b"))
    taken = await book.take(LANES, 30)
    await book.mark(taken.job.spec.key, taken.token, 0, JobItem(JobState.SUCCEEDED, {"bytes": 1}))
    ended = await book.end(taken.job.spec.key, 60)
    assert (ended.before, ended.job.state) == (JobState.RUNNING, JobState.CANCELLED)
    assert not await book.renew(taken.job.spec.key, taken.token, 30)
    other = await book.take(LANES, 30)
    key = other.job.spec.key
    await book.mark(key, other.token, 0, JobItem(JobState.SUCCEEDED, {"bytes": 1}))
    await book.finish(key, other.token, JobState.SUCCEEDED, [], 60)
    ended = await book.end(key, 60)
    assert (ended.before, ended.job.state) == (JobState.SUCCEEDED, JobState.DELETED)
    assert ended.job.items == (JobItem(),)
    assert await book.end("nothing", 60) is None
    assert await book.take(LANES, 30) is None


async def test_an_owner_sees_its_own_the_newest_first(book):
    for name, subject in (("a", "ann"), ("b", "bob"), ("c", "ann"), ("d", "ann")):
        await opened(book, spec(name, subject=subject))
        await asyncio.sleep(0.002)
    mine = spec().owner
    assert [job.spec.id for job in await book.of(mine, 0, 10)] == ["d", "c", "a"]
    assert [job.spec.id for job in await book.of(mine, 1, 1)] == ["c"]
    assert {job.spec.id for job in await book.of(None, 0, 10)} == set("abcd")


async def test_a_callback_is_due_when_the_job_has_ended_and_again_when_it_failed(book):
    await opened(book, spec(callback=HOOK))
    taken = await book.take(LANES, 30)
    assert await book.call(30) is None
    await book.finish(spec().key, taken.token, JobState.SUCCEEDED, [], 60)
    job = await book.call(0.1)
    assert (job.call, job.calls) == (Call.PENDING, 1)
    assert await book.call(30) is None
    await asyncio.sleep(0.15)
    assert (await book.call(30)).calls == 2  # who had it fell silent
    await book.called(spec().key, Call.PENDING, "it answers 500", 0.1)
    assert (await book.get(spec().key)).call_note == "it answers 500"
    assert await book.call(30) is None
    await asyncio.sleep(0.15)
    assert (await book.call(30)).calls == 3
    await book.called(spec().key, Call.DELIVERED, "", 0)
    assert (await book.get(spec().key)).call is Call.DELIVERED
    assert (await book.counts())["due"] == 0


async def test_what_is_over_is_found_and_struck_out(book):
    await book.open(spec("a"), 10, 0.05)
    await book.open(spec("b"), 10, 60)
    await asyncio.sleep(0.1)
    assert [job.spec.id for job in await book.over()] == ["a"]
    await book.forget(spec("a").key)
    assert await book.over() == []
    assert await book.get(spec("a").key) is None
    assert await book.counts() == {"queued": 1, "running": 0, "due": 0}
    assert (await book.take(LANES, 30)).job.spec.id == "b"


async def test_every_change_is_a_new_version(book):
    await opened(book, spec())
    versions = [(await book.get(spec().key)).version]
    taken = await book.take(LANES, 30)
    versions.append((await book.get(spec().key)).version)
    await book.mark(spec().key, taken.token, 0, JobItem(JobState.RUNNING))
    versions.append((await book.get(spec().key)).version)
    await book.finish(spec().key, taken.token, JobState.FAILED, [], 60)
    versions.append((await book.get(spec().key)).version)
    assert versions == sorted(set(versions))


async def test_both_books_do_the_same_whatever_happens(shared):
    """Random wishes, played through both; times are far enough apart not to matter."""
    rng, memory = random.Random(7), InMemoryJobStore()
    tokens = {}
    for step in range(400):
        name, lane = rng.choice("abcdefgh"), rng.choice(LANES)
        key, what = spec(name).key, rng.choice(("open", "take", "mark", "finish", "release", "end"))
        answers = []
        for book in (memory, shared):
            token = tokens.get((book, key), "")
            match what:
                case "open":
                    try:
                        found = await book.open(spec(name, lane=lane), 5, 1000)
                        answers.append(found.new)
                    except JobStoreFullError:
                        answers.append("full")
                case "take":
                    lanes = LANES[: 1 + step % 3]
                    taken = await book.take(lanes, 1000)
                    answers.append(taken and taken.job.spec.id)
                    if taken:
                        tokens[book, taken.job.spec.key] = taken.token
                case "mark":
                    answers.append(await book.mark(key, token, 0, JobItem(JobState.RUNNING)))
                case "finish":
                    answers.append(await book.finish(key, token, JobState.FAILED, [], 1000))
                case "release":
                    answers.append(await book.release(key, token, None))
                case "end":
                    ended = await book.end(key, 1000)
                    answers.append(ended and (ended.before, ended.job.state))
                    if step % 3 == 0:
                        await book.forget(key)
            answers.append(_facts(await book.get(key)))
            answers.append(await book.counts())
        half = len(answers) // 2
        assert answers[:half] == answers[half:], (step, what)
        await asyncio.sleep(0.002)  # so that no two jobs came in one millisecond


def _facts(job: Job | None):
    return job and (job.state, job.items, job.version, job.tries, job.spec.lane)


async def test_without_redis_the_book_says_that_it_cannot_be_asked(free_port):
    book = RedisJobStore(f"redis://127.0.0.1:{free_port}/0", 0.5)
    with pytest.raises(JobStoreError):
        await book.get("a")
    await book.close()


async def test_no_key_names_anybody(shared, lasting_redis):
    await opened(shared, spec("my-job", subject="ann@example.org"))
    async with Redis.from_url(lasting_redis.url) as redis:
        keys = await redis.keys("*")
    assert keys
    assert not [key for key in keys if b"ann" in key or b"my-job" in key]


@pytest.fixture(params=["memory", "redis", "folder", "bucket"])
async def shelf(request, tmp_path):
    match request.param:
        case "memory":
            shelf = MemoryShelf(PLENTY)
        case "redis":
            shelf = RedisJobFiles(request.getfixturevalue("lasting_redis").url, 2.0, PLENTY)
        case "folder":
            shelf = ObjectJobFiles(Storage(folders=(tmp_path,)), f"{tmp_path.as_uri()}/", 10**6)
        case "bucket":
            request.getfixturevalue("cloud")
            shelf = ObjectJobFiles(Storage(), "gs://uploads/jobs/", 10**6)
    yield shelf
    await shelf.close()


async def test_a_shelf_keeps_photos_until_they_are_dropped(shelf):
    data = random.Random(1).randbytes(700_000)
    await shelf.put("x/source-0", b"before", 60)
    await shelf.put("x/source-0", data, 60)
    kept = await shelf.get("x/source-0")
    pieces = [piece async for piece in kept.pieces]
    assert (kept.size, b"".join(pieces)) == (len(data), data)
    assert max(map(len, pieces)) < len(data)
    assert await shelf.get("x/source-1") is None
    await shelf.drop(["x/source-0", "x/source-1"])
    assert await shelf.get("x/source-0") is None


async def test_memory_has_an_end():
    shelf = MemoryShelf(FileBudget(100))
    await shelf.put("a", bytes(60), 60)
    with pytest.raises(NoSpaceError):
        await shelf.put("b", bytes(41), 60)
    await shelf.put("a", bytes(100), 60)
    await shelf.drop(["a"])
    assert shelf.held == 0


async def test_redis_forgets_photos_by_itself(lasting_redis):
    shelf = RedisJobFiles(lasting_redis.url, 2.0, PLENTY)
    await shelf.put("y", b"photo", 0.05)
    await asyncio.sleep(0.1)
    assert await shelf.get("y") is None
    await shelf.close()


async def test_without_redis_the_shelf_says_that_it_cannot_be_reached(free_port):
    shelf = RedisJobFiles(f"redis://127.0.0.1:{free_port}/0", 0.5, PLENTY)
    with pytest.raises(JobFilesError):
        await shelf.put("a", b"photo", 60)
    await shelf.close()


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        ([JobState.SUCCEEDED, JobState.SUCCEEDED], JobState.SUCCEEDED),
        ([JobState.SUCCEEDED, JobState.FAILED], JobState.PARTLY),
        ([JobState.FAILED, JobState.FAILED], JobState.FAILED),
    ],
)
def test_a_job_is_what_its_targets_are(states, whole):
    assert outcome(tuple(map(JobItem, states))) is whole
