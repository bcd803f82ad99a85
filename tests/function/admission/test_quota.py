"""What holds around the store: refunds of those who leave, and a store that fails or hangs."""

from __future__ import annotations

import asyncio

import pytest

from function.admission.account import Allowance
from function.admission.breaker import Breaker
from function.admission.quota import Event, Quota
from function.admission.store import Memory
from function.problems import Problem

FREE = Allowance(10)


class Slow(Memory):
    """A store that answers when it is let go, or fails."""

    instant = False

    def __init__(self):
        super().__init__()
        self.go, self.asked, self.fails = asyncio.Event(), 0, False

    async def take(self, subject, allowance, tokens):
        self.asked += 1
        taken = await super().take(subject, allowance, tokens)
        await self.go.wait()
        if self.fails:
            raise ConnectionError("away")
        return taken


@pytest.fixture
async def store():
    return Slow()


@pytest.fixture
async def quota(store):
    quota = Quota(store, fail_open=False)
    quota.told = []
    quota.listeners.append(lambda event, tokens: quota.told.append((event, tokens)))
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
    assert quota.told == [(Event.TAKEN, 4), (Event.REFUNDED, 4)]


async def test_a_refund_that_the_store_does_not_take_is_told_as_lost(quota, store):
    store.go.set()
    debit, _ = await quota.take("ann", FREE, 4)

    async def away(*_):
        raise ConnectionError("away")

    store.give_back = away
    quota.refund("ann", debit.receipt)
    await quota.close()
    assert quota.told == [(Event.TAKEN, 4), (Event.LOST, 4)]


@pytest.mark.parametrize("fail_open", [True, False])
async def test_a_store_that_fails_is_soon_left_alone(store, fail_open, caplog):
    now = 0.0
    quota = Quota(store, fail_open=fail_open, breaker=Breaker(lambda: now))
    store.go.set()
    store.fails = True
    for _ in range(10):
        if fail_open:
            assert await quota.take("ann", FREE, 1) is None
        else:
            with pytest.raises(Problem) as raised:
                await quota.take("ann", FREE, 1)
            assert raised.value.code == "quota_unavailable"
    assert store.asked == 3
    assert quota.down
    store.fails, now = False, 1.0
    assert await quota.take("ann", FREE, 1)
    assert not quota.down
    assert caplog.messages == ["the quota store is down"]
