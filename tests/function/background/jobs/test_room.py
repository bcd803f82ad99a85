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
from function.background.jobs.redis_files import RedisJobFiles
from function.background.jobs.store import JOBS, JobStore, JobStoreFullError
from function.background.redis_records import RedisRecords
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
def files_of(request):
    """Makes files with that budget."""

    def made(budget):
        if request.param == "memory":
            return InMemoryJobFiles(budget)
        return RedisJobFiles(request.getfixturevalue("lasting_redis").url, 5.0, budget)

    if request.param == "redis":
        request.getfixturevalue("emptied")
    return made


async def fits(files, name, size, holder="", keep_s=60):
    """Whether there was room for a photo; "own" where its holder had none."""
    try:
        await files.put(name, bytes(size), keep_s, holder)
    except NoSpaceError as error:
        return "own" if error.own else False
    return True


async def test_each_holder_has_a_limit_of_bytes_of_its_own(files_of):
    files = files_of(FileBudget(1000, 400))
    assert await fits(files, "a", 300, "ann") is True
    assert await fits(files, "b", 101, "ann") == "own"
    assert await fits(files, "b", 100, "ann") is True
    assert await fits(files, "c", 400, "bob") is True
    assert await fits(files, "d", 201, "cid") is False
    assert await fits(files, "d", 200) is True  # nobody has to say who he is: only all counts
    await files.drop(["a", "nothing"])
    assert await fits(files, "e", 300, "ann") is True
    await files.drop(["a", "b", "c", "d", "e"])
    assert await fits(files, "f", 1000) is True
    await files.close()


async def test_a_replaced_file_counts_once_and_for_its_present_holder(files_of):
    files = files_of(FileBudget(1000, 400))
    for _ in range(3):
        assert await fits(files, "a", 400, "ann") is True
    assert await fits(files, "a", 300, "bob") is True
    assert await fits(files, "b", 400, "ann") is True
    assert await fits(files, "c", 300) is True
    assert await fits(files, "d", 1) is False
    await files.close()


async def test_each_holder_may_have_a_half_unless_the_operator_says_more(files_of):
    files = files_of(FileBudget(1000))
    assert await fits(files, "a", 501, "ann") == "own"
    assert await fits(files, "a", 500, "ann") is True
    await files.close()


async def test_a_photo_of_many_pieces_is_kept_as_it_came(files_of):
    files, data = files_of(FileBudget(10 * MB)), random.Random(2).randbytes(3 * MB + 17)
    for _ in range(2):
        await files.put("a", data, 60)
        assert await (await files.get("a")).whole() == data
    await files.put("a", b"short", 60)
    assert await (await files.get("a")).whole() == b"short"
    await files.close()


async def test_files_that_redis_has_forgotten_take_no_room(lasting_redis, emptied):
    files = RedisJobFiles(lasting_redis.url, 5.0, FileBudget(1000))
    assert await fits(files, "a", 400, "ann", keep_s=0.05) is True
    assert await fits(files, "b", 500, "bob") is True
    await asyncio.sleep(0.1)
    assert await fits(files, "c", 500, "ann") is True
    await files.drop(["b", "c"])
    assert await emptied.keys("ember:{jobs}:*") == []
    await files.close()


async def test_replicas_share_one_budget_however_many_put_at_once(lasting_redis, emptied):
    replicas = [RedisJobFiles(lasting_redis.url, 5.0, FileBudget(1000, 500)) for _ in range(3)]
    found = await asyncio.gather(
        *(fits(replicas[number % 3], str(number), 10, "ann") for number in range(100))
    )
    assert found.count(True) == 50
    assert len(await emptied.keys("ember:jobs:photo:*")) == 50
    for files in replicas:
        await files.close()


async def test_photos_leave_a_half_of_redis_to_others(lasting_redis, emptied):
    """Whatever the setting says: it is for many kinds of Redis."""
    await emptied.config_set("maxmemory", 40 * MB)
    files = RedisJobFiles(lasting_redis.url, 5.0, FileBudget(10**12, 10**12))
    found = [await fits(files, str(n), 4 * MB, f"holder-{n}") for n in range(10)]
    assert 3 <= found.count(True) <= 5
    accounts = RedisAccounts(lasting_redis.url, 5.0)
    assert (await accounts.take("bob", Allowance(10), 1))[0].receipt
    await accounts.close()
    await files.close()


async def test_one_photo_may_be_as_large_as_redis_is_and_does_not_fill_it(lasting_redis, emptied):
    """Bytes under way count as memory as well, so they are not sent before there is room."""
    await emptied.config_set("maxmemory", 20 * MB)
    files, accounts = (
        RedisJobFiles(lasting_redis.url, 5.0, FileBudget(10**12)),
        RedisAccounts(lasting_redis.url, 5),
    )
    putting = [asyncio.create_task(fits(files, str(n), 18 * MB, "ann")) for n in range(8)]
    while not all(each.done() for each in putting):
        assert (await accounts.take("bob", Allowance(10**6), 1))[0].receipt
        await asyncio.sleep(0)
    assert {each.result() for each in putting} <= {"own", False}
    await accounts.close()
    await files.close()


async def test_no_jobs_are_taken_where_others_have_filled_redis(lasting_redis, emptied):
    await emptied.set("of another service", bytes(16 * MB))
    await emptied.config_set("maxmemory", 20 * MB)
    store = JobStore(RedisRecords(lasting_redis.url, 5.0, JOBS))
    with pytest.raises(JobStoreFullError) as refused:
        await store.open(JobSpec("a", "ann", "digest", "at", Lane.BULK, 1.5), 10, 60)
    assert refused.value.memory
    files = RedisJobFiles(lasting_redis.url, 5.0, FileBudget(10**9))
    assert await fits(files, "a", 1000) is False
    await emptied.delete("of another service")
    for _ in range(200):  # Redis keeps the room of large commands for a while
        if await fits(files, "a", 1000):
            break
        await asyncio.sleep(0.1)
    assert await files.get("a")
    await store.close()
    await files.close()


async def test_a_redis_that_does_not_say_how_full_it_is_is_used_all_the_same(
    lasting_redis, emptied
):
    await emptied.execute_command(
        "ACL", "SETUSER", "quiet", "on", ">pw", "~*", "+@all", "-info", "-config"
    )
    url = lasting_redis.url.replace("//", "//quiet:pw@")
    files = RedisJobFiles(url, 5.0, FileBudget(1000))
    assert await fits(files, "a", 1000) is True
    assert await fits(files, "b", 1) is False
    await files.close()


async def test_a_file_that_could_not_be_written_takes_no_room(lasting_redis, emptied, monkeypatch):
    files = RedisJobFiles(lasting_redis.url, 5.0, FileBudget(1000))

    async def broken(*_):
        raise OSError

    write = files._write
    monkeypatch.setattr(files, "_write", broken)
    with pytest.raises(JobFilesError):
        await files.put("a", bytes(1000), 60)
    monkeypatch.setattr(files, "_write", write)
    assert await fits(files, "b", 1000) is True
    await files.close()


def test_a_caller_beyond_its_limit_is_refused_and_others_go_on(tmp_path):
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
