"""Events in both stores: one claim holds, what is done stays done, what is left is taken over."""

from __future__ import annotations

import asyncio
import random

import pytest
from redis.asyncio import Redis

from function.background import in_memory
from function.background.events.dedup import EVENTS, DedupStore, EventKeys, EventState
from function.background.in_memory import InMemoryRecords
from function.background.records import RecordStoreError
from function.background.redis_records import RedisRecords

SOME = [EventKeys.of(name, "s", name) for name in "abcd"]
A, B = EventKeys.of("gs:b/a#1", "s", "1"), EventKeys.of("gs:b/b#1", "s", "2")


class Clock:
    """Milliseconds, which pass when a test says so."""

    now = 1_000_000

    def __call__(self):
        return self.now

    def pass_by(self, seconds):
        self.now += round(seconds * 1000)


@pytest.fixture
def shared(redis_records):
    return DedupStore(redis_records(EVENTS))


@pytest.fixture
def store(records):
    return DedupStore(records(EVENTS))


async def test_the_first_claim_holds_and_the_second_finds_it_running(store):
    first = await store.claim(A, "event", 30)
    second = await store.claim(A, "event", 30)
    assert (first.state, second.state) == (EventState.MINE, EventState.RUNNING)
    assert 29 < second.left_s <= 30
    assert (await store.claim(B, "event", 30)).state is EventState.MINE


async def test_of_a_hundred_claims_at_once_one_holds(store):
    claims = await asyncio.gather(*(store.claim(A, "event", 30) for _ in range(100)))
    assert [claim.state for claim in claims].count(EventState.MINE) == 1


async def test_a_finished_event_stays_finished_with_its_result(store):
    claim = await store.claim(A, "event", 30)
    await store.finish(A, "the result")
    again = await store.claim(A, "event", 30)
    assert (again.state, again.result) == (EventState.DONE, "the result")
    assert not await store.renew(A, claim.token, 30)
    await store.release(A, claim.token)
    assert (await store.claim(A, "event", 30)).state is EventState.DONE


async def test_an_upload_is_known_by_another_event_and_an_event_by_another_upload(store):
    await store.claim(A, "event", 30)
    for same in (EventKeys(A.upload, B.event), EventKeys(B.upload, A.event)):
        assert (await store.claim(same, "event", 30)).state is EventState.RUNNING
    await store.finish(A, "the result")
    for same in (EventKeys(A.upload, B.event), EventKeys(B.upload, A.event)):
        assert (await store.claim(same, "event", 30)).result == "the result"


async def test_a_failed_event_is_forgotten_sooner(store):
    await store.claim(A, "event", 30)
    await store.finish(A, "no", 0.05)
    assert (await store.claim(A, "event", 30)).state is EventState.DONE
    await asyncio.sleep(0.1)
    assert (await store.claim(A, "event", 30)).state is EventState.MINE


async def test_a_released_claim_is_free_for_the_next(store):
    claim = await store.claim(A, "event", 30)
    await store.release(A, "another token")
    assert (await store.claim(A, "event", 30)).state is EventState.RUNNING
    await store.release(A, claim.token)
    assert (await store.claim(A, "event", 30)).state is EventState.MINE


async def test_a_lease_ends_unless_it_is_renewed():
    clock = Clock()
    store = DedupStore(InMemoryRecords(clock))
    claim = await store.claim(A, "event", 30)
    clock.pass_by(20)
    assert await store.renew(A, claim.token, 30)
    clock.pass_by(20)
    assert (await store.claim(A, "event", 30)).state is EventState.RUNNING
    clock.pass_by(31)
    again = await store.claim(A, "event", 30)
    assert again.state is EventState.MINE
    assert not await store.renew(A, claim.token, 30)


async def test_records_in_memory_expire():
    clock = Clock()
    records = InMemoryRecords(clock)
    store = DedupStore(records)
    for n in range(1000):
        keys = EventKeys.of(f"u{n}", "s", str(n))
        await store.claim(keys, "", 30)
        await store.finish(keys, "")
    clock.pass_by(8 * 86_400)
    await store.claim(A, "event", 30)
    assert len(records) == 2


async def test_memory_keeps_a_limited_number_of_finished_events(monkeypatch):
    monkeypatch.setattr(in_memory, "MOST_SETTLED", 10)
    records = InMemoryRecords()
    store = DedupStore(records)
    running = await store.claim(A, "event", 30)
    names = [A.upload]
    for n in range(100):
        keys = EventKeys.of(f"u{n}", "s", str(n))
        names.append(keys.upload)
        await store.claim(keys, "", 30)
        await store.finish(keys, str(n))
    assert sum([bool(await records.decide("get", name)) for name in names]) == 10
    assert (await store.claim(EventKeys.of("u99", "s", "99"), "", 30)).result == "99"
    assert await store.renew(A, running.token, 30)


async def test_nothing_is_accepted_in_memory():
    store = DedupStore(InMemoryRecords())
    claim = await store.claim(A, "event", 30)
    assert not await store.accept(A, claim.token)
    assert await store.take(30) is None


async def test_a_lease_in_redis_ends_by_its_clock(shared):
    await shared.claim(A, "event", 0.05)
    await asyncio.sleep(0.1)
    assert (await shared.claim(A, "event", 30)).state is EventState.MINE


async def test_an_accepted_event_is_taken_over_when_its_lease_runs_out(shared):
    claim = await shared.claim(A, "the event ü", 0.05)
    assert await shared.accept(A, claim.token)
    await asyncio.sleep(0.1)
    left = await shared.take(30)
    assert (left.keys, left.event) == (A, "the event ü")
    assert await shared.take(30) is None
    assert (await shared.claim(A, "event", 30)).state is EventState.ACCEPTED
    assert not await shared.renew(A, claim.token, 30)
    assert await shared.renew(A, left.token, 30)
    await shared.finish(left.keys, "done")
    assert (await shared.claim(A, "event", 30)).state is EventState.DONE
    assert await shared.take(30) is None


async def test_an_accepted_event_that_is_renewed_is_not_taken_over(shared):
    claim = await shared.claim(A, "event", 0.2)
    await shared.accept(A, claim.token)
    for _ in range(4):
        await asyncio.sleep(0.1)
        assert await shared.renew(A, claim.token, 0.2)
        assert await shared.take(30) is None


async def test_an_accepted_event_that_is_released_is_taken_over_at_once(shared):
    claim = await shared.claim(A, "event", 30)
    await shared.accept(A, claim.token)
    await shared.release(A, claim.token)
    assert (await shared.take(30)).keys == A


async def test_an_accepted_event_that_is_delivered_again_goes_on_in_one_place(shared):
    claim = await shared.claim(A, "event", 0.05)
    await shared.accept(A, claim.token)
    await asyncio.sleep(0.1)
    again = await shared.claim(A, "event", 30)
    assert again.state is EventState.MINE
    assert await shared.take(30) is None
    assert await shared.renew(A, again.token, 30)


class LastingRecords(InMemoryRecords):
    """Records in memory of which a promise counts, as of those in Redis."""

    lasting = True


async def test_both_stores_do_the_same_whatever_happens_to_events(shared):
    """Random calls, played through both; leases are over at once, or not at all."""
    rng, memory = random.Random(11), DedupStore(LastingRecords())
    tokens = {}
    for step in range(500):
        keys = EventKeys(rng.choice(SOME).upload, rng.choice(SOME).event)
        lease_s = rng.choice((0, 1000))
        what = rng.choice(("claim", "claim", "renew", "accept", "finish", "release", "take"))
        answers = []
        for store in (memory, shared):
            token = tokens.get((store, keys.upload), "")
            match what:
                case "claim":
                    claim = await store.claim(keys, f"event {step}", lease_s)
                    if claim.state is EventState.MINE:
                        tokens[store, keys.upload] = claim.token
                    answers.append((claim.state, claim.result, round(claim.left_s, -2)))
                case "renew":
                    answers.append(await store.renew(keys, token, lease_s))
                case "accept":
                    answers.append(await store.accept(keys, token))
                case "finish":
                    answers.append(await store.finish(keys, f"result {step}"))
                case "release":
                    answers.append(await store.release(keys, token))
                case "take":
                    taken = await store.take(1000)
                    answers.append(taken and (taken.keys, taken.event))
                    if taken:
                        tokens[store, taken.keys.upload] = taken.token
        assert answers[0] == answers[1], (step, what)
        await asyncio.sleep(0.002)  # so that no two leases end in one millisecond


async def test_nothing_in_redis_names_anybody_and_all_of_it_ends(shared, lasting_redis):
    keys = EventKeys.of("gs:uploads/ann.jpg#1", "source", "ann")
    await shared.claim(keys, "event", 30)
    await shared.finish(keys, "done")
    async with Redis.from_url(lasting_redis.url, decode_responses=True) as redis:
        found = await redis.keys("*")
        assert len(found) == 2
        for key in found:
            assert "ann" not in key
            assert await redis.pttl(key) > 0


async def test_a_redis_that_cannot_be_reached_is_an_error_of_the_store(free_port):
    store = DedupStore(RedisRecords(f"redis://127.0.0.1:{free_port}/0", 0.5, EVENTS))
    with pytest.raises(RecordStoreError):
        await store.claim(A, "event", 30)
    await store.close()


async def test_a_redis_that_is_silent_is_not_waited_for(lasting_redis):
    store = DedupStore(RedisRecords(lasting_redis.url, 0.2, EVENTS))
    lasting_redis.pause()
    try:
        with pytest.raises(RecordStoreError):
            await store.claim(A, "event", 30)
    finally:
        lasting_redis.resume()
    await store.close()
