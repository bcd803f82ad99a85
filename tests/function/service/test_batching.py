"""Whole requests whose faces are identified in shared batches: the same results, for whom it is."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from function import request_context
from function.problems import Problem
from function.process.wiring.service import build_service, embedded
from function.request_context import Lane, RequestContext
from function.requests import SwapRequest, Upload
from function.runtime.engine import PROVIDERS
from function.runtime.scheduling.observer import Unobserved
from function.service import opening
from function.service.engine_config import EngineConfig
from function.service.service import Service, sample
from function.settings import load
from function.telemetry.timings import Timings
from warmup.models import manifest

EMBEDDED = manifest.read(embedded())
MODELS = [
    replace(model, buckets=(1, 4, 8) if model.role == "identity" else ()) for model in EMBEDDED
]
PHOTOS = [Upload(sample("hopper"), "source"), Upload(sample("collins"), "target")]
ORDERS = [SwapRequest((one,), two) for one, two in (PHOTOS, PHOTOS[::-1])]


class Counted(Unobserved):
    def __init__(self):
        self.items, self.lanes, self.left = Counter(), Counter(), Counter()

    def waited(self, where, lane, seconds):
        self.lanes[where, lane] += 1

    def batched(self, stage, items):
        self.items[stage, items] += 1

    def dropped(self, stage):
        self.left[stage] += 1


class Slow:
    """A real engine that takes a while for each batch, and no CPU meanwhile, as a device does."""

    provider = PROVIDERS["cuda"]

    def __init__(self, engine, wait):
        self.engine, self.wait, self.items = engine, wait, engine.items

    def run(self, batch):
        self.wait()
        return self.engine.run(batch)


@pytest.fixture
def counted():
    return Counted()


@pytest.fixture
def make(counted):
    made = []

    def make(wait=None, models_=MODELS, open_engine=opening.open_engine, **config):
        def opened(model, **options):
            engine = open_engine(model, **options)
            return Slow(engine, wait) if wait and model.role == "identity" else engine

        service = Service(
            models_, workers=2, max_pixels=4_000_000, config=EngineConfig(open=opened, **config)
        )
        service.observer = counted
        made.append(service)
        return service

    yield make
    for service in made:
        service.close()


async def asked(service, wanted, lane=Lane.STANDARD, **its):
    request_context.current.set(RequestContext(lane, **its))
    return await service.swap(wanted, Timings())


def outcome(result):
    """The image, and the identity as far as it does not depend on who was in the same batch."""
    return result.image, [round(face.after, 4) for face in result.faces]


@pytest.mark.slow
async def test_a_hundred_swaps_at_once_are_what_each_is_alone_and_share_batches(make, counted):
    service = make(wait=lambda: time.sleep(0.002))
    await service.load()
    alone = [outcome(await service.swap(wanted, Timings())) for wanted in ORDERS]
    lanes = [*Lane] * 34
    crowd = await asyncio.gather(
        *(asked(service, ORDERS[n % 2], lane) for n, lane in enumerate(lanes[:100]))
    )
    assert [outcome(result) for result in crowd] == alone * 50
    sizes = {items for stage, items in counted.items if stage == "identity"}
    assert max(sizes) > 1
    assert {items for stage, items in counted.items if stage != "identity"} == {1}
    assert all(counted.lanes["place", lane] > 30 for lane in Lane)
    assert service.in_work == service.waiting == 0


async def test_there_are_slots_enough_to_fill_a_batch_while_another_runs(make):
    assert make(models_=EMBEDDED).slots == 4
    assert make().slots == 2 + 2 * 8


async def test_the_warm_up_runs_every_size_of_a_batch(make, counted):
    service = make()
    await service.load()
    await service.warm()
    assert {items for stage, items in counted.items if stage == "identity"} >= {1, 4, 8}


async def test_a_swap_that_is_cancelled_leaves_the_batch_and_harms_nobody(make, counted):
    go = threading.Event()
    service = make(wait=lambda: go.wait(30))
    await service.load()
    swaps = [asyncio.create_task(asked(service, ORDERS[0])) for _ in range(6)]
    batcher = service.engines.batcher("identity")
    while len(batcher._queue) < 6:
        await asyncio.sleep(0.005)
    for swap in swaps[1:5]:
        swap.cancel()
    go.set()
    found = await asyncio.gather(*swaps, return_exceptions=True)
    assert [type(each).__name__ for each in found[1:5]] == ["CancelledError"] * 4
    assert found[0].image == found[5].image
    while service.busy:
        await asyncio.sleep(0.005)
    assert counted.left["identity"] >= 4
    assert service.in_work == 0
    assert service._permits.taken == 0


async def test_a_deadline_that_passes_in_a_batch_is_one_requests_own(make):
    go = threading.Event()
    service = make(wait=lambda: go.wait(30))
    await service.load()
    other = asyncio.create_task(asked(service, ORDERS[0]))
    batcher = service.engines.batcher("identity")
    while not batcher._busy:
        await asyncio.sleep(0.005)
    late = asyncio.create_task(asked(service, ORDERS[0], deadline=time.monotonic() + 0.3))
    await asyncio.sleep(0.4)
    go.set()
    with pytest.raises(Problem):
        await late
    assert (await other).faces


async def test_interactive_requests_overtake_bulk_at_every_step(make, counted):
    service = make(wait=lambda: time.sleep(0.005))
    await service.load()
    wanted = []

    async def one(name, lane):
        await asked(service, ORDERS[0], lane)
        wanted.append(name)

    bulk = [asyncio.create_task(one("bulk", Lane.BULK)) for _ in range(40)]
    while not wanted:
        await asyncio.sleep(0.005)
    before = len(wanted)
    await one("interactive", Lane.INTERACTIVE)
    assert len(wanted) - before <= 1 + service.slots  # at most those that were in work already
    await asyncio.gather(*bulk)


class TestTuned:
    @pytest.fixture
    def store(self, tmp_path):
        return tmp_path

    def plans(self, store):
        return [json.loads(path.read_text()) for path in (store / "tuned").glob("*.json")]

    async def test_only_what_takes_batches_is_measured_and_only_once(self, make, store):
        for times in (1, 0):
            service = make(store=store, tune=True)
            await service.load()
            names = [span.name for span in service.timeline.spans]
            assert names.count("tune identity") == times
            assert not {"tune detect", "tune landmarks"} & set(names)
        (plan,) = self.plans(store)
        assert (plan["threads"], plan["runs"]) in {(1, 2), (2, 1)}
        assert plan["size"] in (1, 4, 8)
        assert await service.swap(ORDERS[0], Timings())

    async def test_a_plan_is_followed(self, make, store):
        await make(store=store, tune=True).load()
        (path,) = (store / "tuned").glob("*.json")
        path.write_text('{"threads": 2, "runs": 1, "size": 4}')
        threads = []

        def noting(model, **options):
            threads.append((model.role, options.get("threads", 1)))
            return opening.open_engine(model, **options)

        service = make(store=store, tune=True, open_engine=noting)
        await service.load()
        batcher = service.engines.batcher("identity")
        assert ("identity", 2) in threads
        assert (batcher.cap, batcher._runs) == (4, 1)

    async def test_the_embedded_models_have_nothing_to_measure(self, make, store):
        service = make(models_=EMBEDDED, store=store, tune=True)
        await service.load()
        assert not [span.name for span in service.timeline.spans if span.name.startswith("tune")]
        assert all(service.engines.batcher(role)._runs is None for role in service.engines.by_role)

    def test_a_number_of_threads_that_is_set_takes_the_place_of_measuring(self):
        for environ, tune in (({}, True), ({"EMBER_THREADS": "3"}, False)):
            service = build_service(load(environ))
            assert service.engines.config.tune is tune
            service.close()


async def test_a_bad_result_fails_its_own_request_only(make):
    """The identity model gives nonsense for one face of a batch."""
    service = make()
    await service.load()
    batcher = service.engines.batcher("identity")
    run, calls = batcher._engine.run, []

    def once_broken(batch):
        outputs = run(batch)
        if not calls:
            calls.append(len(batch))
            outputs[0][0] = np.nan
        return outputs

    batcher._engine.run = once_broken
    found = await asyncio.gather(
        *(asked(service, ORDERS[0]) for _ in range(8)), return_exceptions=True
    )
    assert len([each for each in found if isinstance(each, Exception)]) == 1
