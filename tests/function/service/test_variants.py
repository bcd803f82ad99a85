"""A replica becomes ready on variants; the full models replace them while it serves."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from function.process.wiring.service import embedded
from function.requests import SwapRequest, Upload
from function.runtime.sanity import WrongResultError
from function.service import opening
from function.service.engine_config import EngineConfig
from function.service.service import Service, sample
from function.telemetry.timings import Timings
from warmup.failures import ManifestError, UnavailableError
from warmup.models import manifest
from warmup.models.manifest import GoldenEntry

ORDER = SwapRequest((Upload(sample("hopper"), "source"),), Upload(sample("collins"), "target"))


def with_variants(model):
    names = ("small", "tiny") if model.role == "identity" else ()
    files = [replace(model.file, name=f"{model.role}/{name}") for name in names]
    return replace(model, variants=tuple(files))


MODELS = [with_variants(model) for model in manifest.read(embedded())]


class World:
    """Fetches nothing and opens real engines; knows what was asked for, by the names of files."""

    def __init__(self):
        self.fetched, self.opened, self.ran = [], Counter(), Counter()
        self.change = {}
        self.offline = False

    def fetch(self, models, report):
        if self.offline:
            raise UnavailableError("offline")
        self.fetched.append({file.name for model in models for file in model.files})
        return models

    def open(self, model, **options):
        self.opened[model.file.name] += 1
        return Spied(opening.open_engine(model, **options), model.file.name, self)


class Spied:
    def __init__(self, engine, name, world):
        self.engine, self.name, self.world = engine, name, world
        self.provider, self.items = engine.provider, engine.items

    def run(self, batch):
        self.world.ran[self.name] += 1
        return self.world.change.get(self.name, lambda outputs: outputs)(self.engine.run(batch))


@pytest.fixture
def world():
    return World()


@pytest.fixture
def make(world):
    made = []

    def make(models=MODELS, variant="small", **config):
        config = EngineConfig(open=world.open, fetch=world.fetch, variant=variant, **config)
        made.append(Service(models, workers=2, max_pixels=4_000_000, config=config))
        return made[-1]

    yield make
    for service in made:
        service.close()


async def ready(service):
    await service.fetch()
    await service.load(whole=False)
    await service.warm()
    return service


def variant(service):
    facts = service.engines.facts()
    assert {role for role in facts if facts[role]["variant"]} <= {"identity"}
    return facts["identity"]["variant"]


async def test_without_a_name_variants_are_neither_fetched_nor_loaded(make, world):
    service = await ready(make(variant=None))
    assert world.fetched == [{"detect", "landmarks", "identity", "gate"}]
    assert set(world.opened) == {"detect", "landmarks", "identity", "gate"}
    assert (service.lesser, variant(service)) == (False, None)


async def test_readiness_needs_only_the_variant_and_the_full_model_comes_behind(make, world):
    service = await ready(make())
    assert world.fetched == [{"detect", "landmarks", "identity/small", "gate"}]
    assert world.opened == {"detect": 1, "landmarks": 1, "identity/small": 1, "gate": 1}
    assert (service.lesser, variant(service)) == (True, "small")
    await service.upgrade()
    assert world.fetched[1:] == [{"detect", "landmarks", "identity", "gate"}]
    assert world.opened == dict.fromkeys(
        ["detect", "landmarks", "identity/small", "identity", "gate"], 1
    )
    assert world.ran["identity"] == 1  # before anybody needs it
    assert (service.lesser, variant(service)) == (False, None)
    assert service.engines.by_role["identity"].load_s is not None
    before = world.ran["identity/small"]
    await service.swap(ORDER, Timings())
    assert world.ran["identity/small"] == before
    assert world.ran["identity"] > 1


async def test_a_name_that_no_model_has_is_refused_at_once(make):
    with pytest.raises(ManifestError, match="EMBER_VARIANT is smal,"):
        make(variant="smal")


async def test_a_request_in_work_ends_on_the_variant_with_which_it_began(make, world):
    service = await ready(make())
    begun, go = threading.Event(), threading.Event()

    def hold(outputs):
        if not begun.is_set():
            begun.set()
            assert go.wait(30)
        return outputs

    alone = await service.swap(ORDER, Timings())
    world.change["identity/small"] = hold
    world.ran.clear()
    swap = asyncio.create_task(service.swap(ORDER, Timings()))
    await asyncio.to_thread(begun.wait, 30)
    upgrade = asyncio.create_task(service.upgrade())
    while world.opened["identity"] == 0:
        await asyncio.sleep(0.001)
    go.set()
    result, _ = await asyncio.gather(swap, upgrade)
    assert result.image == alone.image
    assert world.ran["identity"] == 1
    assert world.ran["identity/small"] >= 3  # source, target, and judging


async def test_no_request_fails_while_a_model_is_replaced(make, world):
    service = await ready(make())
    done = []

    async def client():
        while variant(service) or len(done) < 8:
            done.append((await service.swap(ORDER, Timings())).image)

    await asyncio.gather(service.upgrade(), *(client() for _ in range(4)))
    assert len(set(done)) == 1  # the graphs are the same here


@pytest.mark.parametrize("failure", ["fetch", "NaN"])
async def test_an_upgrade_that_fails_leaves_the_variant_at_work(make, world, failure):
    service = await ready(make())
    if failure == "fetch":
        world.offline = True
    else:
        world.change["identity"] = lambda outputs: [outputs[0] * np.nan]
    with pytest.raises((UnavailableError, WrongResultError)):
        await service.upgrade()
    assert (service.lesser, variant(service)) == (True, "small")
    await service.swap(ORDER, Timings())
    world.offline, world.change = False, {}
    await service.upgrade()
    assert variant(service) is None


async def test_a_variant_that_was_left_cold_is_never_loaded_after_the_upgrade(make, world):
    later = [replace(model, preload=model.role != "identity") for model in MODELS]
    service = await ready(make(later))
    await service.upgrade()
    assert service.cold
    await service.swap(ORDER, Timings())
    assert world.opened == {"detect": 1, "landmarks": 1, "identity": 1, "gate": 1}


class TestGolden:
    @pytest.fixture
    def golden(self, tmp_path):
        """A manifest whose identity has a golden output, the one that it really gives."""
        face = np.random.default_rng(1).uniform(0, 1, (1, 150, 150, 3)).astype(np.float32)
        (model,) = [model for model in MODELS if model.role == "identity"]
        np.save(tmp_path / "in.npy", face)
        np.save(tmp_path / "out.npy", opening.open_engine(model).run(face)[0])
        known = GoldenEntry(tmp_path / "in.npy", tmp_path / "out.npy", 0.999)
        return [replace(m, golden=known) if m is model else m for m in MODELS]

    async def test_a_right_model_passes(self, make, golden):
        service = await ready(make(golden, variant=None))
        assert "check identity" in [span.name for span in service.timeline.spans]

    @pytest.mark.parametrize("preload", [True, False])
    @pytest.mark.parametrize("chosen", [None, "small"])
    async def test_a_wrong_model_is_not_loaded(self, make, world, golden, chosen, preload):
        name = "identity/small" if chosen else "identity"
        world.change[name] = lambda outputs: [-outputs[0]]
        service = make(golden, variant=chosen, preload=preload)
        await service.load(whole=False) if not preload else None
        with pytest.raises(WrongResultError, match=f"^{name}: golden check: .*got -1.0000"):
            await service.load()
        assert not service.engines.by_role["identity"].loaded
        world.change.clear()
        await service.load()

    async def test_a_wrong_full_model_does_not_replace_the_variant(self, make, world, golden):
        service = await ready(make(golden))
        world.change["identity"] = lambda outputs: [-outputs[0]]
        with pytest.raises(WrongResultError, match=r"^identity: golden check"):
            await service.upgrade()
        assert variant(service) == "small"
