"""Nobody's URIs hold up everybody's: shares of places, and a least pace."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from ipaddress import ip_network

import pytest
from aiohttp import web

from function.storage.addresses import allowed
from warmup.objects import web as webs
from warmup.objects.fair_semaphore import FairSemaphore
from warmup.objects.pace import LEAST, WINDOW_S, Pace, TooSlowError

from .test_web import DATA, HERE, LIMIT, Site

NEXT = (ip_network("127.0.0.3/32"),)


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


class Holder:
    """Holds a place until it is let go."""

    def __init__(self, shares, name):
        self.has, self._over = False, asyncio.Event()
        self.task = asyncio.create_task(self._hold(shares, name))

    async def _hold(self, shares, name):
        async with shares.place(name):
            self.has = True
            await self._over.wait()

    async def go(self):
        self._over.set()
        await self.task
        await settled()


async def test_one_name_gets_its_share_and_leaves_the_rest_to_others():
    shares = FairSemaphore(4, 2)
    ours = [Holder(shares, "a") for _ in range(10)]
    await settled()
    assert sum(each.has for each in ours) == 2
    other = Holder(shares, "b")
    await settled()
    assert other.has
    await ours[0].go()
    assert [each.has for each in ours[:4]] == [True, True, True, False]  # who came first
    for each in [*ours[1:], other]:
        await each.go()
    assert not shares._shares


async def test_together_they_get_no_more_than_there_are():
    shares = FairSemaphore(3, 2)
    holders = [Holder(shares, name) for name in "aabbcc"]
    await settled()
    assert [each.has for each in holders] == [True, True, True, False, False, False]
    await holders[0].go()
    assert holders[3].has
    for each in holders[1:]:
        await each.go()


async def test_whoever_stops_waiting_leaves_nothing_behind():
    shares = FairSemaphore(1, 1)
    holder, waiting = Holder(shares, "a"), [Holder(shares, name) for name in "ab"]
    await settled()
    for each in waiting:
        each.task.cancel()
    await asyncio.gather(*(each.task for each in waiting), return_exceptions=True)
    await holder.go()
    assert not shares._shares
    last = Holder(shares, "b")
    await settled()
    assert last.has
    await last.go()


def test_a_drip_is_too_slow_and_what_comes_in_bursts_is_not():
    drip = Pace("a.test", 0.0)
    for tenth in range(1, round(10 * WINDOW_S)):
        drip.note(1, tenth / 10)
    with pytest.raises(TooSlowError):
        drip.note(1, WINDOW_S)
    bursts = Pace("a.test", 0.0)
    for second in range(0, 100, 4):
        bursts.note(8 * LEAST, float(second))
    quick_then_slow = Pace("a.test", 0.0)
    quick_then_slow.note(10**6, WINDOW_S)
    with pytest.raises(TooSlowError):
        quick_then_slow.note(10, 2 * WINDOW_S)


@pytest.fixture
async def site():
    site = Site()
    runner = web.AppRunner(site.app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.2", 0).start()
    await web.TCPSite(runner, "127.0.0.3", runner.addresses[0][1]).start()
    site.port = runner.addresses[0][1]
    yield site
    await runner.cleanup()


class TestOverHttp:
    """Nothing here is measured: what is held stays held until the test lets it go."""

    @pytest.fixture
    async def here(self, site):
        over, held = asyncio.Event(), []

        @site.on("held")
        async def hold(request):
            held.append(request)
            await over.wait()
            return web.Response(body=DATA)

        @site.on("free")
        async def answer(_):
            return web.Response(body=DATA)

        here = webs.WebStore(partial(allowed, networks=[*HERE, *NEXT]), 60.0, None)
        yield here, held
        over.set()
        await here.close()

    async def test_slow_answers_of_one_host_take_only_its_share(self, site, here):
        place, held = here
        tasks = [
            asyncio.create_task(place.read(site.url("held"), LIMIT, lambda _: None))
            for _ in range(webs._PLACES["read"][0])
        ]
        while len(held) < webs._PLACES["read"][1]:
            await asyncio.sleep(0.01)
        found = await place.read(site.url("free", "127.0.0.3"), LIMIT, lambda _: None)
        assert found.data == DATA
        assert len(held) == webs._PLACES["read"][1]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        again = await place.read(site.url("free"), LIMIT, lambda _: None)
        assert again.data == DATA

    async def test_reading_holds_up_neither_outputs_nor_callbacks(self, site, here):
        place, held = here
        tasks = [
            asyncio.create_task(place.read(site.url("held"), LIMIT, lambda _: None))
            for _ in range(webs._PLACES["read"][1])
        ]
        while len(held) < len(tasks):
            await asyncio.sleep(0.01)
        assert await place.post(site.url("free"), b"{}", {}) == 200
        sent = {"media_type": "image/png", "metadata": {}, "if_generation_match": None}
        await place.write(site.url("free"), b"x", **sent)
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)
