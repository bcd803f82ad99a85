"""Both ledgers: whoever comes first works, what is done stays done, what is left is found."""

from __future__ import annotations

import asyncio

import pytest
from redis.asyncio import Redis

from function.background.events import dedup as ledgers
from function.background.events.dedup import (
    DedupStoreError,
    EventKeys,
    EventState,
    InMemoryDedupStore,
)
from function.background.events.redis_dedup import RedisDedupStore

A, B = EventKeys.of("gs:b/a#1", "s", "1"), EventKeys.of("gs:b/b#1", "s", "2")


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
async def shared(lasting_redis):
    ledger = RedisDedupStore(lasting_redis.url, 2.0)
    async with Redis.from_url(lasting_redis.url) as redis:
        await redis.flushall()
    yield ledger
    await ledger.close()


@pytest.fixture(params=["memory", "redis"])
def ledger(request):
    return InMemoryDedupStore() if request.param == "memory" else request.getfixturevalue("shared")


async def test_the_first_works_and_the_others_are_told(ledger):
    first = await ledger.claim(A, "event", 30)
    second = await ledger.claim(A, "event", 30)
    assert (first.state, second.state) == (EventState.MINE, EventState.RUNNING)
    assert 29 < second.left_s <= 30
    assert (await ledger.claim(B, "event", 30)).state is EventState.MINE


async def test_of_a_hundred_at_once_one_works(ledger):
    claims = await asyncio.gather(*(ledger.claim(A, "event", 30) for _ in range(100)))
    assert [claim.state for claim in claims].count(EventState.MINE) == 1


async def test_what_is_done_stays_done_with_its_result(ledger):
    claim = await ledger.claim(A, "event", 30)
    await ledger.finish(A, claim.token, "the result")
    again = await ledger.claim(A, "event", 30)
    assert (again.state, again.result) == (EventState.DONE, "the result")
    assert not await ledger.renew(A, claim.token, 30)
    await ledger.release(A, claim.token)
    assert (await ledger.claim(A, "event", 30)).state is EventState.DONE


async def test_an_upload_is_known_by_another_event_and_an_event_by_another_upload(ledger):
    claim = await ledger.claim(A, "event", 30)
    for same in (EventKeys(A.upload, B.event), EventKeys(B.upload, A.event)):
        assert (await ledger.claim(same, "event", 30)).state is EventState.RUNNING
    await ledger.finish(A, claim.token, "the result")
    for same in (EventKeys(A.upload, B.event), EventKeys(B.upload, A.event)):
        assert (await ledger.claim(same, "event", 30)).result == "the result"


async def test_what_cannot_work_is_forgotten_sooner(ledger):
    claim = await ledger.claim(A, "event", 30)
    await ledger.finish(A, claim.token, "no", 0.05)
    assert (await ledger.claim(A, "event", 30)).state is EventState.DONE
    await asyncio.sleep(0.1)
    assert (await ledger.claim(A, "event", 30)).state is EventState.MINE


async def test_what_was_given_up_is_the_next_ones(ledger):
    claim = await ledger.claim(A, "event", 30)
    await ledger.release(A, "another token")
    assert (await ledger.claim(A, "event", 30)).state is EventState.RUNNING
    await ledger.release(A, claim.token)
    assert (await ledger.claim(A, "event", 30)).state is EventState.MINE


async def test_a_lease_ends_unless_it_is_renewed():
    clock = Clock()
    ledger = InMemoryDedupStore(clock)
    claim = await ledger.claim(A, "event", 30)
    clock.now += 20
    assert await ledger.renew(A, claim.token, 30)
    clock.now += 20
    assert (await ledger.claim(A, "event", 30)).state is EventState.RUNNING
    clock.now += 31
    again = await ledger.claim(A, "event", 30)
    assert again.state is EventState.MINE
    assert not await ledger.renew(A, claim.token, 30)


async def test_memory_forgets_what_is_over():
    clock = Clock()
    ledger = InMemoryDedupStore(clock)
    for n in range(1000):
        keys = EventKeys.of(f"u{n}", "s", str(n))
        await ledger.finish(keys, (await ledger.claim(keys, "", 30)).token, "")
    clock.now += 8 * 86_400
    await ledger.claim(A, "event", 30)
    assert len(ledger) == 2


async def test_memory_has_an_end(monkeypatch):
    monkeypatch.setattr(ledgers, "MOST", 10)
    ledger = InMemoryDedupStore()
    running = await ledger.claim(A, "event", 30)
    for n in range(100):
        keys = EventKeys.of(f"u{n}", "s", str(n))
        await ledger.finish(keys, (await ledger.claim(keys, "", 30)).token, str(n))
    assert len(ledger._records) == 10
    assert (await ledger.claim(EventKeys.of("u99", "s", "99"), "", 30)).result == "99"
    assert await ledger.renew(A, running.token, 30)


async def test_memory_promises_nothing():
    ledger = InMemoryDedupStore()
    claim = await ledger.claim(A, "event", 30)
    assert not await ledger.accept(A, claim.token)
    assert await ledger.left(30) is None


async def test_a_lease_in_redis_ends_by_its_clock(shared):
    await shared.claim(A, "event", 0.05)
    await asyncio.sleep(0.1)
    assert (await shared.claim(A, "event", 30)).state is EventState.MINE


async def test_what_was_accepted_is_found_when_its_worker_is_silent(shared):
    claim = await shared.claim(A, "the event ü", 0.05)
    assert await shared.accept(A, claim.token)
    await asyncio.sleep(0.1)
    left = await shared.left(30)
    assert (left.keys, left.event) == (A, "the event ü")
    assert await shared.left(30) is None
    assert (await shared.claim(A, "event", 30)).state is EventState.ACCEPTED
    assert not await shared.renew(A, claim.token, 30)
    assert await shared.renew(A, left.token, 30)
    await shared.finish(left.keys, left.token, "done")
    assert (await shared.claim(A, "event", 30)).state is EventState.DONE
    assert await shared.left(30) is None


async def test_what_was_accepted_and_is_renewed_is_not_left(shared):
    claim = await shared.claim(A, "event", 0.2)
    await shared.accept(A, claim.token)
    for _ in range(4):
        await asyncio.sleep(0.1)
        assert await shared.renew(A, claim.token, 0.2)
        assert await shared.left(30) is None


async def test_what_was_accepted_and_given_up_is_found_at_once(shared):
    claim = await shared.claim(A, "event", 30)
    await shared.accept(A, claim.token)
    await shared.release(A, claim.token)
    assert (await shared.left(30)).keys == A


async def test_what_was_accepted_and_delivered_again_goes_on_in_one_place(shared):
    claim = await shared.claim(A, "event", 0.05)
    await shared.accept(A, claim.token)
    await asyncio.sleep(0.1)
    again = await shared.claim(A, "event", 30)
    assert again.state is EventState.MINE
    assert await shared.left(30) is None
    assert await shared.renew(A, again.token, 30)


async def test_nothing_in_redis_names_anybody_and_all_of_it_ends(shared, lasting_redis):
    keys = EventKeys.of("gs:uploads/ann.jpg#1", "source", "ann")
    claim = await shared.claim(keys, "event", 30)
    await shared.finish(keys, claim.token, "done")
    async with Redis.from_url(lasting_redis.url, decode_responses=True) as redis:
        found = await redis.keys("*")
        assert len(found) == 2
        for key in found:
            assert "ann" not in key
            assert await redis.pttl(key) > 0


async def test_a_redis_that_is_not_there_is_said_to_be(free_port):
    ledger = RedisDedupStore(f"redis://127.0.0.1:{free_port}/0", 0.5)
    with pytest.raises(DedupStoreError):
        await ledger.claim(A, "event", 30)
    await ledger.close()


async def test_a_redis_that_is_silent_is_not_waited_for(lasting_redis):
    ledger = RedisDedupStore(lasting_redis.url, 0.2)
    lasting_redis.pause()
    try:
        with pytest.raises(DedupStoreError):
            await ledger.claim(A, "event", 30)
    finally:
        lasting_redis.resume()
    await ledger.close()
