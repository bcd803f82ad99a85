"""Every user of Redis: connections that died, what counts as slow, what is asked twice."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as BrokenError

from function.admission.account import Allowance
from function.admission.quota import Quota
from function.admission.redis_accounts import RedisAccounts
from function.background.events.dedup import EVENTS, DedupStore, EventKeys
from function.background.jobs.files import FileBudget
from function.background.jobs.job import JobSpec, JobState
from function.background.jobs.redis_files import RedisJobFiles
from function.background.jobs.store import JOBS, JobStore
from function.background.redis_records import RedisRecords
from function.problems import Problem
from function.redis.client import Client
from function.redis.timeout import timeout
from function.request_context import Lane

SPEC = JobSpec("a", "ann", "digest", "at", Lane.BULK, 1.5)
KEYS = EventKeys.of("upload", "source", "event")
PLENTY = Allowance(1000)


class Everyone:
    """All users of Redis, and everything that each of them asks."""

    def __init__(self, url, timeout_s=2.0):
        self.quota, self.ledger = (
            RedisAccounts(url, timeout_s),
            DedupStore(RedisRecords(url, timeout_s, EVENTS)),
        )
        self.book, self.shelf = (
            JobStore(RedisRecords(url, timeout_s, JOBS)),
            RedisJobFiles(url, timeout_s, FileBudget(10**7)),
        )

    async def ask(self):
        debit, _ = await self.quota.take("ann", PLENTY, 1)
        await self.quota.give_back("ann", debit.receipt)
        await self.quota.look("ann")
        claim = await self.ledger.claim(KEYS, "{}", 30)
        await self.ledger.renew(KEYS, claim.token, 30)
        await self.ledger.release(KEYS, claim.token)
        await self.book.open(SPEC, 10, 60)
        if taken := await self.book.take(list(Lane), 30):
            assert await self.book.renew(SPEC.key, taken.token, 30)
            assert await self.book.release(SPEC.key, taken.token, None)
        assert await self.book.get(SPEC.key)
        await self.shelf.put("x", bytes(300_000), 60)
        assert len(await (await self.shelf.get("x")).whole()) == 300_000

    async def close(self):
        for each in (self.quota, self.ledger, self.book, self.shelf):
            await each.close()


@contextlib.asynccontextmanager
async def everyone(url, **options):
    users = Everyone(url, **options)
    try:
        yield users
    finally:
        await users.close()


class Relay:
    """What is between Ember and Redis: it may drop in silence, or cut while something is asked."""

    def __init__(self, port):
        self._target, self._server, self._frozen = port, None, []
        self.links, self.silent, self.cut_after = 0, False, None

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"redis://127.0.0.1:{port}/0"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for each in self._frozen:
            each.cancel()
        await asyncio.gather(*self._frozen, return_exceptions=True)

    def forget(self):
        """Whoever is connected now hears nothing any more, not even that."""
        for each in self._frozen:
            each.silent = True

    async def _serve(self, reader, writer):
        self.links += 1
        task = asyncio.current_task()
        self._frozen.append(link := _Link(task))
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            await asyncio.gather(self._asked(link, reader, back), self._told(link, there, writer))
        except (asyncio.CancelledError, OSError):
            pass
        finally:
            for each in (writer, back):
                each.close()

    async def _asked(self, link, reader, writer):
        while data := await reader.read(65536):
            if link.silent:
                continue
            writer.write(data)
            if self.cut_after and self.cut_after in data:
                self.cut_after = None
                link.silent = True  # Redis does it, and nobody hears of it
                await writer.drain()
                await asyncio.sleep(0.05)
                link.task.cancel()
                return
        writer.close()

    async def _told(self, link, reader, writer):
        while data := await reader.read(65536):
            if not link.silent:
                writer.write(data)
        writer.close()


class _Link:
    def __init__(self, task):
        self.task, self.silent, self.cancel = task, False, task.cancel

    def __await__(self):
        return asyncio.gather(self.task, return_exceptions=True).__await__()


def hold(seconds):
    """Keep the event loop from everything else."""
    time.sleep(seconds)


async def kill_all(url):
    """What a Redis with `timeout`, a fail-over or a proxy does to connections."""
    async with Redis.from_url(url) as redis:
        await redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


async def test_nobody_notices_that_idle_connections_were_closed(redis_server):
    async with everyone(redis_server.url) as users:
        for _ in range(5):
            await users.ask()
            await kill_all(redis_server.url)
            await asyncio.sleep(0.05)
        await users.ask()


async def test_nobody_notices_that_redis_was_started_again_meanwhile(redis_server):
    async with everyone(redis_server.url) as users:
        for _ in range(3):
            await users.ask()
            redis_server.kill()
            redis_server.start()
        await users.ask()


async def test_nobody_notices_that_idle_connections_were_dropped_in_silence(redis_server):
    async with Relay(redis_server.port) as relay, everyone(relay.url, timeout_s=0.5) as users:
        await users.ask()
        relay.forget()
        await asyncio.sleep(1.1)  # as long as a connection is trusted unseen
        await users.ask()


async def test_what_may_have_been_done_is_not_asked_again(redis_server):
    async with Relay(redis_server.port) as relay:
        store = RedisAccounts(relay.url, 2.0)
        await store.take("ann", PLENTY, 1)
        relay.cut_after = b"take"
        with pytest.raises(BrokenError):
            await store.take("ann", PLENTY, 1)
        assert (await store.look("ann")).account.used == 2
        await store.close()


async def test_what_does_no_harm_is_asked_again_on_a_fresh_connection(redis_server):
    async with Relay(redis_server.port) as relay, everyone(relay.url) as users:
        await users.book.open(SPEC, 10, 60)
        taken = await users.book.take(list(Lane), 30)
        for word, question in [
            (b"\r\nget\r\n", lambda: users.book.get(SPEC.key)),
            (b"renew", lambda: users.book.renew(SPEC.key, taken.token, 30)),
            (b"look", lambda: users.quota.look("ann")),
            (b"SET", lambda: users.shelf.put("x", b"photo", 60)),
            (b"STRLEN", lambda: users.shelf.get("x")),
        ]:
            relay.cut_after, links = word, relay.links
            await question()
            assert relay.cut_after is None
            assert relay.links > links
        relay.cut_after = b"finish"
        assert await users.book.finish(SPEC.key, taken.token, JobState.FAILED, [], 60)


async def test_commands_are_not_written_in_a_way_that_can_lose_a_cancel(redis_server, monkeypatch):
    """`asyncio.wait_for` of Python 3.11 can; the library uses it where it has a timeout."""

    async def wait_for(*_):
        raise AssertionError("a cancel can get lost here")

    monkeypatch.setattr(asyncio, "wait_for", wait_for)
    for query in ("", "?socket_timeout=5&protocol=3"):
        async with everyone(redis_server.url + query) as users:
            await users.ask()


async def test_a_busy_loop_is_no_slow_redis(redis_server):
    """What answers within milliseconds counts as such, though nobody could look for a second."""
    client = Client(redis_server.url, 0.2, 4)

    async def busy():
        for _ in range(4):
            await asyncio.sleep(0)
            hold(0.3)

    for _ in range(3):
        answers = await asyncio.gather(*(client.execute("ECHO", "x") for _ in range(20)), busy())
        assert answers[:20] == [b"x"] * 20
    await client.close()


async def test_a_burst_takes_what_there_is_to_the_token(redis_server):
    """Each answer makes work that holds the loop up, as bodies of requests do."""
    quota, paid = Quota(RedisAccounts(redis_server.url, 0.1), fail_open=True), Allowance(50)

    async def caller():
        debit, standing = await quota.take("ann", paid, 1)
        hold(0.004)
        return debit.receipt is not None, standing.certain

    found = await asyncio.gather(*(caller() for _ in range(400)))
    assert sum(taken for taken, _ in found) == 50
    assert all(certain for _, certain in found)
    assert (await quota.standing("ann", paid)).account.used == 50
    await quota.close()


async def test_a_redis_that_answers_nothing_ends_in_time(redis_server):
    client = Client(redis_server.url, 0.2, 2)
    await client.execute("PING")
    redis_server.pause()
    with pytest.raises(TimeoutError):
        await client.execute("PING")
    redis_server.resume()
    assert await client.execute("PING") == b"PONG"
    await client.close()


async def test_a_limit_counts_the_time_in_which_an_answer_could_be_seen():
    with pytest.raises(TimeoutError):
        async with timeout(0.05):
            await asyncio.sleep(60)
    answer = asyncio.get_running_loop().create_future()
    async with timeout(0.05):
        asyncio.get_running_loop().call_later(0.3, answer.set_result, 1)
        hold(0.35)
        assert await answer == 1


async def test_a_full_redis_is_told_from_one_that_is_away(redis_server):
    async with everyone(redis_server.url) as users:
        await users.ask()
        async with Redis.from_url(redis_server.url) as redis:
            await redis.config_set("maxmemory", 1)
            quota = Quota(users.quota, fail_open=True)
            for _ in range(5):
                with pytest.raises(Problem) as raised:
                    await quota.take("ann", PLENTY, 1)
                assert raised.value.code == "quota_unavailable"
            assert quota.down
            await redis.config_set("maxmemory", 0)
