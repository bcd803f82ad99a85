"""Engines are loaded once, on what is wanted; the warm-up runs them on every worker, for real."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

from function.problems import Problem
from function.process.wiring.service import embedded
from function.requests import SwapRequest, Upload
from function.runtime.engine import NotOnDeviceError
from function.runtime.lazy_engine import LoadState
from function.runtime.sanity import WrongResultError
from function.service import opening
from function.service.engine_config import EngineConfig
from function.service.service import Service, sample
from function.telemetry.timings import Timings
from tests import neural
from warmup.failures import ManifestError
from warmup.models import golden, manifest
from warmup.models.file import File
from warmup.models.manifest import Model

MODELS = manifest.read(embedded())
GOLDEN = golden.read(embedded())
SOURCE, TARGET = Upload(sample("hopper"), "source"), Upload(sample("collins"), "target")
ROLES = ["detect", "gate", "identity", "landmarks"]
MOVABLE = ["detect", "identity", "landmarks"]


class Opener:
    """Opens real engines; counts, and can change what comes out of one of them."""

    def __init__(self):
        self.opened = Counter()
        self.runs = Counter()
        self.change = {}
        self.provider = None
        self.broken = set()

    def __call__(self, model, **options):
        self.opened[model.role] += 1
        if model.role in self.broken:
            raise OSError(f"{model.role} is broken")
        return Spied(opening.open_engine(model, **options), model.role, self)


class Spied:
    def __init__(self, engine, role, opener):
        self.engine, self.role, self.opener = engine, role, opener

    @property
    def provider(self):
        return self.opener.provider or self.engine.provider

    @property
    def items(self):
        return self.engine.items

    def run(self, batch):
        self.opener.runs[self.role, batch.shape] += 1
        change = self.opener.change.get(self.role, lambda outputs: outputs)
        return change(self.engine.run(batch))


@pytest.fixture
def opener():
    return Opener()


@pytest.fixture
def make(opener):
    made = []

    def make(models=MODELS, workers=2, expected=GOLDEN, swaps=1, **config):
        config = EngineConfig(open=opener, **config)
        service = Service(
            models,
            workers=workers,
            max_pixels=4_000_000,
            config=config,
            expected=expected,
            swaps=swaps,
        )
        made.append(service)
        return service

    yield make
    for service in made:
        service.close()


def states(service):
    return {role: str(slot.state) for role, slot in sorted(service.engines.by_role.items())}


async def test_a_hundred_first_requests_load_each_model_exactly_once(make, opener):
    service = make(preload=False)
    await service.load(whole=False)
    assert opener.opened == {}
    await asyncio.gather(*(service.faces(TARGET, Timings()) for _ in range(100)))
    assert opener.opened == {"detect": 1, "landmarks": 1}


async def test_a_request_loads_only_what_its_task_needs(make, opener):
    service, found = make(preload=False), ("detect", "landmarks")
    await service.faces(TARGET, Timings())
    assert service.cold
    assert states(service) == dict.fromkeys(ROLES, "waiting") | dict.fromkeys(found, "warmed")
    trace = Timings()
    await service.swap(SwapRequest((SOURCE,), TARGET), trace)
    assert "load" in trace.totals()
    assert not service.cold
    assert opener.opened == dict.fromkeys(ROLES, 1)


async def test_a_model_that_the_manifest_leaves_for_later_is_left(make, opener):
    some = [replace(model, preload=model.role != "identity") for model in MODELS]
    service = make(some)
    await service.load(whole=False)
    await service.warm()
    assert states(service) == dict.fromkeys(ROLES, "warmed") | {"identity": "waiting"}
    assert opener.runs == {
        ("detect", (1, 3, 640, 640)): 1,
        ("landmarks", (1, 192, 192, 3)): 1,
        ("gate", (1, 224, 224, 3)): 2,  # also on its golden array
    }
    await service.load(whole=True)
    assert not service.cold


async def test_a_model_that_cannot_be_loaded_is_a_503_and_the_next_request_tries_again(
    make, opener
):
    service = make(preload=False)
    errors = []
    service.on_load_error = errors.append
    opener.broken.add("landmarks")
    with pytest.raises(Problem) as caught:
        await service.faces(TARGET, Timings())
    assert caught.value.code == "not_ready"
    assert [str(error) for error in errors] == ["landmarks is broken"]
    assert states(service)["landmarks"] == "failed"
    opener.broken.clear()
    await service.faces(TARGET, Timings())
    assert opener.opened == {"detect": 1, "landmarks": 2}


async def test_the_warm_up_runs_every_shape_and_then_whole_swaps(make, opener):
    service = make(swaps=2)
    await service.load()
    await service.warm()
    assert opener.runs["detect", (1, 3, 640, 640)] == 1
    assert opener.runs["detect", (1, 3, 512, 512)] == 2  # collins.jpg
    assert opener.runs["identity", (1, 150, 150, 3)] == 1 + 3 * 2  # both photos, and judging
    names = [span.name for span in service.timeline.spans]
    assert {f"load {role}" for role in ROLES} < set(names)
    assert set(names[-3:]) == {"warm swap", "golden"}
    assert "warm detect 1×3×640×640" in names


@pytest.mark.parametrize(
    ("role", "change", "told"),
    [
        ("detect", lambda outputs: [output * np.nan for output in outputs], "detect gives values"),
        ("identity", lambda outputs: [outputs[0] * np.nan], "identity gives values"),
        ("identity", lambda outputs: [outputs[0] * 3], "from the source's identity"),
        ("landmarks", lambda outputs: [outputs[0] * 0.97, *outputs[1:]], "golden check"),
    ],
    ids=["NaN", "NaN identity", "another identity", "shifted landmarks"],
)
async def test_a_wrong_model_fails_the_warm_up(make, opener, role, change, told):
    service = make()
    await service.load()
    opener.change[role] = change
    with pytest.raises(WrongResultError, match=told):
        await service.warm()
    opener.change.clear()
    await service.warm()


async def test_the_batch_sizes_of_the_manifest_are_warmed_in_place_of_the_familys(make, opener):
    sizes = {"detect": (1, 2), "identity": (4,)}
    service = make([replace(model, buckets=sizes.get(model.role, ())) for model in MODELS])
    await service.load()
    await service.warm()
    assert opener.runs["detect", (1, 3, 640, 640)] == opener.runs["detect", (2, 3, 640, 640)] == 1
    assert opener.runs["identity", (4, 150, 150, 3)] == 1
    assert opener.runs["landmarks", (1, 192, 192, 3)] >= 1
    assert service.engines.shapes("identity") == [((4, 150, 150, 3),)]


async def test_a_manifest_without_a_golden_pair_is_warmed_with_the_samples(make, opener):
    service = make(expected=None)
    await service.load()
    await service.warm()
    assert opener.runs["detect", (1, 3, 512, 512)] == 1


async def test_a_beat_is_one_swap_and_counts_as_work(make, opener):
    service = make()
    await service.load()
    opener.runs.clear()
    service._last_work -= 100
    assert service.idle_s > 99
    beat = asyncio.create_task(service.beat())
    while not service.in_work:
        await asyncio.sleep(0.001)
    assert service.idle_s == 0
    await beat
    assert service.idle_s < 99
    assert opener.runs["detect", (1, 3, 512, 512)] == 1


async def test_a_model_on_another_device_than_wanted_is_refused():
    with pytest.raises(
        NotOnDeviceError, match=r"does not run on CUDA.*EMBER_ALLOW_DEGRADED=true would"
    ):
        opening.open_engine(MODELS[0], backends=("cuda", "cpu"))


async def test_a_model_on_another_device_is_degraded_where_that_is_allowed(make, opener):
    service = make(backends=("cuda", "cpu"), allow_degraded=True)
    await service.load()
    assert sorted(service.engines.degraded) == MOVABLE
    assert set(service.engines.providers.values()) == {"CPUExecutionProvider"}


async def test_the_provider_is_what_the_engine_says_not_what_was_wanted(make, opener):
    opener.provider = "CUDAExecutionProvider"
    service = make(backends=("cuda", "cpu"), allow_degraded=True)
    await service.load()
    assert service.engines.degraded == ()
    opener.provider = "CPUExecutionProvider"
    assert sorted(service.engines.degraded) == MOVABLE


class Progress:
    def __init__(self, name):
        self.name, self.done = name, 0

    def facts(self):
        return {"done": self.done, "size": 10}


def at(model, path):
    return replace(model, file=replace(model.file, path=path))


async def test_models_are_where_the_fetch_says_and_its_progress_is_reported(make, opener, tmp_path):
    progress, go = Progress("detect"), threading.Event()

    def fetch(models, report):
        report(progress)
        progress.done = 4
        assert go.wait(20)
        for model in models:
            (tmp_path / model.role).write_bytes(model.path.read_bytes())
        return [at(model, tmp_path / model.role) for model in models]

    elsewhere = [at(model, tmp_path / "nowhere") for model in MODELS]
    files = {model.role: model.path for model in MODELS}

    def fetch_from_files(models, report):
        return fetch([at(model, files[model.role]) for model in models], report)

    service = make(elsewhere, fetch=fetch_from_files)
    assert service.fetches
    fetching = asyncio.create_task(service.fetch())
    while not progress.done:
        await asyncio.sleep(0.001)
    told = service.engines.facts()
    assert told["detect"] == {
        "state": "waiting",
        "provider": None,
        "variant": None,
        "passed_over": [],
        "fetch": {"done": 4, "size": 10},
    }
    assert told["identity"]["fetch"] is None
    go.set()
    await fetching
    await service.load()
    assert not service.cold


async def test_a_fetch_that_is_given_up_still_keeps_a_thread_busy(make):
    begun, go = threading.Event(), threading.Event()

    def fetch(models, report):
        begun.set()
        assert go.wait(20)
        return models

    service = make(fetch=fetch)
    fetching = asyncio.create_task(service.fetch())
    await asyncio.to_thread(begun.wait, 20)
    fetching.cancel()
    await asyncio.gather(fetching, return_exceptions=True)
    assert service.busy
    go.set()
    while service.busy:
        await asyncio.sleep(0.001)


async def test_without_a_fetch_there_is_nothing_to_fetch(make):
    service = make()
    assert not service.fetches
    await service.fetch()


async def test_a_manifest_that_lacks_a_role_is_refused_at_once(make):
    with pytest.raises(ManifestError, match="no model for identity"):
        make(MODELS[:2])
    with pytest.raises(ManifestError, match="unknown family 'other'"):
        make([replace(MODELS[0], family="other"), *MODELS[1:]])


async def test_a_job_is_watched_and_work_for_nobody_is_busy(make, opener):
    service = make(workers=1)
    await service.load()
    go, begun = threading.Event(), threading.Event()

    def hang(outputs):
        begun.set()
        assert go.wait(20)
        return outputs

    opener.change["detect"] = hang
    assert (service.longest_job_s, service.busy) == (0, False)
    hanging = asyncio.create_task(service.faces(TARGET, Timings()))
    await asyncio.to_thread(begun.wait, 20)
    first = service.longest_job_s
    assert 0 < first < service.longest_job_s
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)
    assert (service.busy, service.in_work) == (True, 0)
    go.set()
    while service.busy:
        await asyncio.sleep(0.001)


async def test_loading_is_no_job_but_busy(make, opener):
    service = make()
    loading = asyncio.create_task(service.load())
    while LoadState.LOADING not in [slot.state for slot in service.engines.by_role.values()]:
        await asyncio.sleep(0)
    assert (service.longest_job_s, service.busy) == (0, True)
    await loading
    assert not service.busy


async def test_a_graph_for_one_item_runs_item_by_item_and_the_log_says_so_once(
    make, tmp_path, caplog
):
    path = neural.make(tmp_path / "identity.onnx", "arcface", dynamic=False)
    content = path.read_bytes()
    file = File("identity", path.as_uri(), len(content), sha256(content).hexdigest(), path)
    own = Model("identity", "arcface", file, "MIT")
    faces = [each for each in MODELS if each.role != "identity"]
    with caplog.at_level("INFO", "ember.engines"):
        service = make([*faces, own], expected=None)
        await service.load()
    said = [each for each in caplog.records if "made for so many items" in each.message]
    assert [(each.role, each.items) for each in said] == [("identity", 1)]
    rows = np.random.default_rng(0).random((3, 3, 112, 112), np.float32)
    engine = service.engines.by_role["identity"]
    (together,) = engine.run(rows)
    alone = [engine.run(rows[n : n + 1])[0] for n in range(3)]
    np.testing.assert_array_equal(together, np.concatenate(alone))
