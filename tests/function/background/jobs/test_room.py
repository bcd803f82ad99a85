"""How many bytes of photos are kept for jobs, of each caller and in all; a Redis that is full."""

from __future__ import annotations

import asyncio
import random

import pytest
from redis.asyncio import Redis

from function.admission import keys
from function.admission.account import Allowance
from function.admission.redis_accounts import RedisAccounts
from function.background.jobs.files import FileBudget, InMemoryJobFiles, JobFilesError, NoSpaceError
from function.background.jobs.job import JobSpec
from function.background.jobs.redis_store import RedisJobFiles, RedisJobStore
from function.background.jobs.store import JobStoreFullError
from function.request_context import Lane
from tests.function.admission.redis_server import RedisServer
from tests.function.live import NOBODY, SOURCE, TARGET, Live
from tests.running import unused_port

from .conftest import finished, put

MB = 2**20


@pytest.fixture
async def emptied(lasting_redis):
    async with Redis.from_url(lasting_redis.url) as redis:
        await redis.config_set("maxmemory", 0)
        await redis.flushall()
        yield redis
        await redis.config_set("maxmemory", 0)


@pytest.fixture(params=["memory", "redis"])
def shelf_of(request):
    """Makes a shelf of that budget."""

    def made(budget):
        if request.param == "memory":
            return InMemoryJobFiles(budget)
        return RedisJobFiles(request.getfixturevalue("lasting_redis").url, 5.0, budget)

    if request.param == "redis":
        request.getfixturevalue("emptied")
    return made


async def fits(shelf, name, size, holder="", keep_s=60):
    """Whether there was room for a photo; "own" where its holder had none."""
    try:
        await shelf.put(name, bytes(size), keep_s, holder)
    except NoSpaceError as error:
        return "own" if error.own else False
    return True


async def test_one_holder_has_its_part_and_others_have_theirs(shelf_of):
    shelf = shelf_of(FileBudget(1000, 400))
    assert await fits(shelf, "a", 300, "ann") is True
    assert await fits(shelf, "b", 101, "ann") == "own"
    assert await fits(shelf, "b", 100, "ann") is True
    assert await fits(shelf, "c", 400, "bob") is True
    assert await fits(shelf, "d", 201, "cid") is False
    assert await fits(shelf, "d", 200) is True  # nobody has to say who he is: only all counts
    await shelf.drop(["a", "nothing"])
    assert await fits(shelf, "e", 300, "ann") is True
    await shelf.drop(["a", "b", "c", "d", "e"])
    assert await fits(shelf, "f", 1000) is True
    await shelf.close()


async def test_what_is_replaced_counts_once_and_for_whom_it_is_now(shelf_of):
    shelf = shelf_of(FileBudget(1000, 400))
    for _ in range(3):
        assert await fits(shelf, "a", 400, "ann") is True
    assert await fits(shelf, "a", 300, "bob") is True
    assert await fits(shelf, "b", 400, "ann") is True
    assert await fits(shelf, "c", 300) is True
    assert await fits(shelf, "d", 1) is False
    await shelf.close()


async def test_a_half_is_each_holders_unless_the_operator_says_more(shelf_of):
    shelf = shelf_of(FileBudget(1000))
    assert await fits(shelf, "a", 501, "ann") == "own"
    assert await fits(shelf, "a", 500, "ann") is True
    await shelf.close()


async def test_a_photo_of_many_pieces_is_kept_as_it_came(shelf_of):
    shelf, data = shelf_of(FileBudget(10 * MB)), random.Random(2).randbytes(3 * MB + 17)
    for _ in range(2):
        await shelf.put("a", data, 60)
        assert await (await shelf.get("a")).whole() == data
    await shelf.put("a", b"short", 60)
    assert await (await shelf.get("a")).whole() == b"short"
    await shelf.close()


async def test_what_redis_has_forgotten_takes_no_room(lasting_redis, emptied):
    shelf = RedisJobFiles(lasting_redis.url, 5.0, FileBudget(1000))
    assert await fits(shelf, "a", 400, "ann", keep_s=0.05) is True
    assert await fits(shelf, "b", 500, "bob") is True
    await asyncio.sleep(0.1)
    assert await fits(shelf, "c", 500, "ann") is True
    await shelf.drop(["b", "c"])
    assert await emptied.keys("ember:{jobs}:*") == []
    await shelf.close()


async def test_replicas_share_one_budget_however_many_put_at_once(lasting_redis, emptied):
    shelves = [RedisJobFiles(lasting_redis.url, 5.0, FileBudget(1000, 500)) for _ in range(3)]
    found = await asyncio.gather(
        *(fits(shelves[number % 3], str(number), 10, "ann") for number in range(100))
    )
    assert found.count(True) == 50
    assert len(await emptied.keys("ember:jobs:photo:*")) == 50
    for shelf in shelves:
        await shelf.close()


async def test_photos_leave_a_half_of_redis_to_others(lasting_redis, emptied):
    """Whatever the setting says: it is for many kinds of Redis."""
    await emptied.config_set("maxmemory", 40 * MB)
    shelf = RedisJobFiles(lasting_redis.url, 5.0, FileBudget(10**12, 10**12))
    found = [await fits(shelf, str(n), 4 * MB, f"holder-{n}") for n in range(10)]
    assert 3 <= found.count(True) <= 5
    store = RedisAccounts(lasting_redis.url, 5.0)
    assert (await store.take("bob", Allowance(10), 1))[0].receipt
    await store.close()
    await shelf.close()


async def test_one_photo_may_be_as_large_as_redis_is_and_does_not_fill_it(lasting_redis, emptied):
    """Bytes under way count as memory as well, so they are not sent before there is room."""
    await emptied.config_set("maxmemory", 20 * MB)
    shelf, store = (
        RedisJobFiles(lasting_redis.url, 5.0, FileBudget(10**12)),
        RedisAccounts(lasting_redis.url, 5),
    )
    putting = [asyncio.create_task(fits(shelf, str(n), 18 * MB, "ann")) for n in range(8)]
    while not all(each.done() for each in putting):
        assert (await store.take("bob", Allowance(10**6), 1))[0].receipt
        await asyncio.sleep(0)
    assert {each.result() for each in putting} <= {"own", False}
    await store.close()
    await shelf.close()


async def test_jobs_take_no_more_where_others_have_filled_redis(lasting_redis, emptied):
    await emptied.set("of another service", bytes(16 * MB))
    await emptied.config_set("maxmemory", 20 * MB)
    book = RedisJobStore(lasting_redis.url, 5.0)
    with pytest.raises(JobStoreFullError) as refused:
        await book.open(JobSpec("a", "ann", "digest", "at", Lane.BULK, 1.5), 10, 60)
    assert refused.value.memory
    shelf = RedisJobFiles(lasting_redis.url, 5.0, FileBudget(10**9))
    assert await fits(shelf, "a", 1000) is False
    await emptied.delete("of another service")
    for _ in range(200):  # Redis keeps the room of large commands for a while
        if await fits(shelf, "a", 1000):
            break
        await asyncio.sleep(0.1)
    assert await shelf.get("a")
    await book.close()
    await shelf.close()


async def test_a_redis_that_does_not_tell_how_full_it_is_is_used_all_the_same(
    lasting_redis, emptied
):
    await emptied.execute_command(
        "ACL", "SETUSER", "quiet", "on", ">pw", "~*", "+@all", "-info", "-config"
    )
    url = lasting_redis.url.replace("//", "//quiet:pw@")
    shelf = RedisJobFiles(url, 5.0, FileBudget(1000))
    assert await fits(shelf, "a", 1000) is True
    assert await fits(shelf, "b", 1) is False
    await shelf.close()


async def test_what_could_not_be_written_takes_no_room(lasting_redis, emptied, monkeypatch):
    shelf = RedisJobFiles(lasting_redis.url, 5.0, FileBudget(1000))

    async def broken(*_):
        raise OSError

    write = shelf._write
    monkeypatch.setattr(shelf, "_write", broken)
    with pytest.raises(JobFilesError):
        await shelf.put("a", bytes(1000), 60)
    monkeypatch.setattr(shelf, "_write", write)
    assert await fits(shelf, "b", 1000) is True
    await shelf.close()


def test_who_has_filled_his_part_is_told_so_and_others_go_on(tmp_path):
    made = {name: keys.new(name, "vip") for name in ("ann", "bob")}
    path = tmp_path / "keys"
    path.write_text("\n".join(line for _, line in made.values()))
    ann, bob = ({"Authorization": f"Bearer {made[name][0]}"} for name in ("ann", "bob"))
    padded = ("target", TARGET[1] + bytes(400_000))
    with Live(auth="keys", keys=path, job_bytes=2_000_000, job_caller_bytes=800_000) as server:
        assert put(server, "first", SOURCE, padded, **ann).status == 201
        finished(server, "first", **ann)
        refused = put(server, "second", SOURCE, padded, padded, **ann).problem("too_many", 429)
        assert refused["setting"] == "EMBER_JOB_CALLER_BYTES"
        assert put(server, "first", SOURCE, padded, **bob).status == 201
        assert put(server, "third", SOURCE, ("target", NOBODY), **ann).status == 201


def test_tokens_and_jobs_may_be_in_two_stores(needs, tmp_path):
    path, (key, line) = tmp_path / "keys", keys.new("ann", "paid")
    path.write_text(line)
    who = {"Authorization": f"Bearer {key}"}
    options = ("--dir", str(tmp_path), "--maxmemory-policy", "noeviction")
    with (
        RedisServer(needs("redis-server"), unused_port(), *options) as tokens,
        RedisServer(needs("redis-server"), unused_port(), *options) as jobs,
    ):
        urls = {"redis_url": tokens.url, "jobs_redis_url": jobs.url}
        with Live(auth="keys", keys=path, redis_timeout_s=5.0, **urls) as server:
            assert put(server, "first", SOURCE, TARGET, **who).status == 201
            assert finished(server, "first", **who)["state"] == "succeeded"
            asyncio.run(check(tokens.url, jobs.url))
            jobs.kill()
            put(server, "second", SOURCE, TARGET, **who).problem("jobs_unavailable", 503)
            assert server.form("/v1/swap", SOURCE, TARGET, **who).headers["RateLimit"]


async def check(tokens, jobs):
    async with Redis.from_url(tokens) as there, Redis.from_url(jobs) as here:
        assert all(key.startswith(b"ember:quota:") for key in await there.keys())
        assert all(key.startswith((b"ember:jobs:", b"ember:{jobs}:")) for key in await here.keys())
        assert await here.keys()
