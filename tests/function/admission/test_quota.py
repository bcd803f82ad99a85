"""What holds around the store: refunds of those who leave, and a store that fails or hangs."""

from __future__ import annotations

import asyncio

import pytest

from function.admission.account import Allowance
from function.admission.account_store import AT_ONCE, InMemoryAccounts, StoreFullError
from function.admission.breaker import Breaker
from function.admission.quota import Quota, QuotaEvent
from function.problems import Problem

FREE = Allowance(10)


class Slow(InMemoryAccounts):
    """A store that answers when it is let go, or fails."""

    instant = False

    def __init__(self):
        super().__init__()
        self.go, self.asked, self.fails = asyncio.Event(), 0, None

    async def take(self, subject, allowance, tokens):
        return await self.answer(super().take(subject, allowance, tokens))

    async def settle(self, subject, allowance, tokens, key):
        return await self.answer(super().settle(subject, allowance, tokens, key))

    async def answer(self, question):
        self.asked += 1
        if self.fails:
            question.close()
            raise self.fails
        answer = await question
        await self.go.wait()
        return answer


@pytest.fixture
async def store():
    return Slow()


@pytest.fixture
async def quota(store):
    quota = Quota(store, fail_open=False)
    quota.events = []
    quota.listeners.append(lambda event, tokens: quota.events.append((event, tokens)))
    return quota


async def test_who_leaves_while_the_store_decides_gets_the_tokens_back(quota, store):
    leaving = asyncio.create_task(quota.take("ann", FREE, 4))
    while not store.asked:
        await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    store.go.set()
    await quota.close()
    assert (await store.look("ann")).account.left(FREE) == 10
    assert quota.events == [(QuotaEvent.TAKEN, 4), (QuotaEvent.REFUNDED, 4)]


async def test_a_refund_that_the_store_does_not_take_counts_as_lost(quota, store):
    store.go.set()
    debit, _ = await quota.take("ann", FREE, 4)

    async def away(*_):
        raise ConnectionError("away")

    store.give_back = away
    quota.refund("ann", debit.receipt)
    await quota.close()
    assert quota.events == [(QuotaEvent.TAKEN, 4), (QuotaEvent.LOST, 4)]


@pytest.mark.parametrize("fail_open", [True, False])
async def test_a_store_that_fails_is_soon_left_alone(store, fail_open, caplog):
    now = 0.0
    quota = Quota(store, fail_open=fail_open, breaker=Breaker(lambda: now))
    store.go.set()
    store.fails = ConnectionError("away")
    for _ in range(10):
        if fail_open:
            debit, standing = await quota.take("ann", FREE, 1)
            assert debit.receipt
            assert not standing.certain
        else:
            with pytest.raises(Problem) as raised:
                await quota.take("ann", FREE, 1)
            assert raised.value.code == "quota_unavailable"
    assert store.asked == 3
    assert quota.down
    store.fails, now = None, 1.0
    if not fail_open:  # there, all ten are used
        assert await quota.take("ann", FREE, 1)
    await quota.settle()
    await quota.standing("ann", FREE)
    assert not quota.down
    await quota.close()
    assert caplog.messages == ["the quota store is down"]


@pytest.fixture
async def lenient(store):
    """A quota that counts by itself while the store is away, as it is now."""
    clock = [0.0]
    quota = Quota(store, fail_open=True, breaker=Breaker(lambda: clock[0]))
    quota.events = []
    quota.listeners.append(lambda event, tokens: quota.events.append((event, tokens)))
    quota.clock = clock
    store.go.set()
    yield quota
    store.fails = None
    await quota.close()


async def tokens_taken(quota, times, tokens=1):
    """Of so many takes, how many were given."""
    found = [await quota.take("ann", FREE, tokens) for _ in range(times)]
    return sum(debit.receipt is not None for debit, _ in found)


async def back(quota, store):
    """The store is back, and what was used meanwhile is settled."""
    store.fails, quota.clock[0] = None, quota.clock[0] + 60
    await quota.settle()


async def test_nobody_has_more_while_the_store_is_away_than_there_was(lenient, store):
    assert await tokens_taken(lenient, 4) == 4
    store.fails = ConnectionError("away")
    assert await tokens_taken(lenient, 400) == 6
    debit, standing = await lenient.take("ann", FREE, 1)
    assert (debit.receipt, standing.tokens, standing.certain) == (None, 0, False)
    assert 0 < debit.again_ms <= 3_600_000


async def test_what_is_used_while_the_store_is_away_is_settled_once(lenient, store):
    store.fails = ConnectionError("away")
    assert await tokens_taken(lenient, 3, 2) == 3
    await back(lenient, store)
    await lenient.settle()
    assert (await store.look("ann")).account.left(FREE) == 4
    assert sum(tokens for event, tokens in lenient.events if event is QuotaEvent.SETTLED) == 6
    assert await tokens_taken(lenient, 10) == 4


async def test_what_is_owed_counts_before_anything_more_is_taken(lenient, store):
    """The store is back, and the next take comes before anybody has settled."""
    store.fails = ConnectionError("away")
    assert await tokens_taken(lenient, 8) == 8
    store.fails, lenient.clock[0] = None, 60
    assert await tokens_taken(lenient, 10) == 2


async def test_granted_tokens_can_be_used_while_the_store_is_away(lenient, store):
    await lenient.grant("ann", 5, "key")
    assert await tokens_taken(lenient, 1) == 1
    store.fails = ConnectionError("away")
    assert await tokens_taken(lenient, 20) == 14
    await back(lenient, store)
    account = (await store.look("ann")).account
    assert (account.left(FREE), account.granted) == (0, 0)


async def test_what_was_used_elsewhere_meanwhile_is_owed_until_the_period_ends(lenient, store):
    store.fails = ConnectionError("away")
    assert await tokens_taken(lenient, 8) == 8
    store.fails = None
    assert (await store.take("ann", FREE, 10))[0].receipt  # by another replica
    lenient.clock[0] = 60
    await lenient.settle()
    account = (await store.look("ann")).account
    assert (account.used, account.left(FREE)) == (18, 0)


@pytest.mark.parametrize("when", ["meanwhile", "when it is back"])
async def test_a_refund_of_what_was_taken_meanwhile_is_made_once(lenient, store, when):
    store.fails = ConnectionError("away")
    debit, _ = await lenient.take("ann", FREE, 4)
    if when == "meanwhile":
        lenient.refund("ann", debit.receipt)
        assert await tokens_taken(lenient, 20) == 10
        await back(lenient, store)
        assert (await store.look("ann")).account.used == 10
    else:
        await back(lenient, store)
        assert (await store.look("ann")).account.used == 4
        lenient.refund("ann", debit.receipt)
        await lenient.close()
        assert (await store.look("ann")).account.used == 0


async def test_a_store_without_room_lets_nobody_in_uncounted(lenient, store):
    store.fails = StoreFullError()
    for _ in range(5):
        with pytest.raises(Problem) as raised:
            await lenient.take("ann", FREE, 1)
        assert raised.value.code == "quota_unavailable"
    assert lenient.down
    store.fails, lenient.clock[0] = None, 60
    assert await tokens_taken(lenient, 20) == 10


async def test_a_crowd_that_waits_for_a_store_learns_at_once_that_it_is_down():
    class Silent(InMemoryAccounts):
        """A store that fails after a while, as one that does not answer."""

        instant, asked = False, 0

        async def take(self, *_):
            self.asked += 1
            await asyncio.sleep(0.01)
            raise TimeoutError

    store = Silent()
    quota = Quota(store, fail_open=True)
    allowance = Allowance(50)
    found = await asyncio.gather(*(quota.take("ann", allowance, 1) for _ in range(400)))
    assert sum(debit.receipt is not None for debit, _ in found) == 50
    assert store.asked <= 3 * AT_ONCE
    await quota.close()
