"""The plans that a node needs: fetched for the GPU that it has, built where that is wanted.

A stand-in for NVML says which GPU is there; plans are real ones of TensorRT-RTX.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from function.faces import families
from function.process.wiring.service import embedded
from function.service import plans
from function.settings import load
from tests.warmup.plans.nvml import Card
from warmup.models import manifest
from warmup.plans import tensorrt
from warmup.plans.build import BuildJob, compile_plan
from warmup.plans.plan_key import Recipe
from warmup.plans.stored import described, open_plans
from warmup.settings.variables import replace as changed

ADA = Card(0, name="NVIDIA GeForce RTX 4090", sm=(8, 9))
MODELS = [model for model in manifest.read(embedded()) if model.role == "landmarks"]


@pytest.fixture
def settings(tmp_path):
    return load(
        {
            "EMBER_STORE": str(tmp_path / "store"),
            "EMBER_PLANS": str(tmp_path / "shared"),
            "EMBER_BACKENDS": "tensorrt,cuda",
        }
    )


@pytest.fixture
def published(rtx, settings, tmp_path):
    """A plan for compute capability 8.9 in the shared place; its key."""
    (model,) = MODELS
    key = replace(families.plan_key(model, Recipe(), rtx, None), sm="8.9")
    content = compile_plan(BuildJob(model.path, key.profiles, Recipe(), "8.9"), rtx)
    made = open_plans(changed(settings, store=tmp_path / "builder"))
    made.keep(described(key, content, built_by=rtx.version, seconds=1), content)
    made.publish(key)
    return key


@pytest.fixture(autouse=True)
def only_rtx(monkeypatch):
    """As on a machine without TensorRT itself."""
    monkeypatch.setitem(tensorrt._MODULES, tensorrt.FULL, ())
    monkeypatch.setitem(tensorrt._MODULES, tensorrt.LEAN, ())
    tensorrt.library.cache_clear()
    yield
    tensorrt.library.cache_clear()


def building(settings):
    return plans.LatePlans(settings, replace(settings.engines, build_plans=True))


def held(settings, key):
    found = open_plans(settings).find(key)
    if found:
        found[1].close()
    return found is not None


def test_the_plan_for_the_gpu_of_the_node_is_fetched(settings, published, cards):
    cards(ADA)
    plans.fetch(MODELS, settings, settings.engines)
    assert held(settings, published)


def test_on_another_gpu_it_is_not(settings, published, cards):
    cards(Card(0, sm=(8, 6)))
    plans.fetch(MODELS, settings, settings.engines)
    assert not held(settings, published)


@pytest.mark.parametrize(
    "change", [{"backends": ("cuda",)}, {"plans": None}, {"plan_level": 5}], ids=str
)
def test_nor_where_nobody_would_run_it(settings, published, cards, change):
    cards(ADA)
    settings = changed(settings, **change)
    plans.fetch(MODELS, settings, settings.engines)
    assert not held(settings, published)


def test_without_a_gpu_the_start_goes_on(settings, published, cards, caplog):
    cards(broken=True)
    with caplog.at_level(logging.INFO):
        plans.fetch(MODELS, settings, settings.engines)
    assert "plans are left to whoever has the GPU" in caplog.text
    assert not held(settings, published)


def test_a_damaged_plan_costs_speed_and_not_the_start(settings, published, cards, caplog, tmp_path):
    cards(ADA)
    (tmp_path / "shared" / "plans" / published.digest / "plan").write_bytes(b"damaged")
    with caplog.at_level(logging.WARNING):
        plans.fetch(MODELS, settings, settings.engines)
    assert "a plan cannot be fetched" in caplog.text
    assert not held(settings, published)


def test_a_replica_that_asks_later_gets_what_has_come_meanwhile(settings, cards, request):
    cards(ADA)
    source = plans.LatePlans(settings, settings.engines)
    assert source.obtain(MODELS) == set()
    request.getfixturevalue("published")
    assert source.obtain(MODELS) == {"landmarks"}


def test_a_plan_that_a_newer_library_has_built_is_none_and_is_built(
    settings, published, cards, builder
):
    cards(ADA)
    started, own = builder(""), open_plans(settings)
    assert own.fetch(published)
    sidecar, found = own.find(published)
    found.close()
    own._note(replace(sidecar, built_by="99.0"))
    assert plans.LatePlans(settings, settings.engines).obtain(MODELS) == set()
    assert building(settings).obtain(MODELS) == set()
    assert len(started) == 1


@pytest.fixture
def builder(monkeypatch):
    """What is started in the place of `ember engines build`."""
    started = []

    def builder(code):
        def start(command, **more):
            started.append(command)
            return subprocess_popen([sys.executable, "-c", code], **more)

        subprocess_popen = subprocess.Popen
        monkeypatch.setattr(plans.subprocess, "Popen", start)
        return started

    return builder


def test_what_is_missing_is_built_where_that_is_wanted(settings, cards, builder, caplog):
    cards(ADA)
    started = builder("import sys; sys.exit('Error: the GPU has no room')")
    with caplog.at_level(logging.WARNING):
        assert plans.LatePlans(settings, settings.engines).obtain(MODELS) == set()
        assert started == []
        assert building(settings).obtain(MODELS) == set()
    ((_, *words),) = started
    assert words == ["-m", "function", "engines", "build", "--role", "landmarks"]
    assert caplog.records[-1].reason == "Error: the GPU has no room"


def test_a_builder_ends_with_the_replica(settings, cards, builder):
    cards(ADA)
    builder("import time; time.sleep(60)")
    source = building(settings)
    thread = threading.Thread(target=source.obtain, args=(MODELS,))
    thread.start()
    while source._builder is None:
        time.sleep(0.01)
    source.close()
    thread.join(20)
    assert not thread.is_alive()
    assert source._builder.returncode
