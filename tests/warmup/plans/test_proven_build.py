"""A plan is built once for each key, and nobody sees it before it has passed its check."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from tests.graphs import convolved
from warmup.failures import DamagedError
from warmup.models.store import Store
from warmup.plans import proven_build
from warmup.plans.build import BuildError, compile_plan
from warmup.plans.plan_key import Recipe, key_for, profiles_for
from warmup.plans.proven_build import BuildRequest, build
from warmup.plans.stored import Plans

PROFILES = profiles_for([("", (3, 16, 16), (3, 16, 16))], (1, 2))


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return convolved(tmp_path_factory.mktemp("graph") / "model.onnx")


@pytest.fixture
def plans(settings, tmp_path):
    return Plans(Store(settings.store), settings, str(tmp_path / "shared"))


@pytest.fixture
def order(graph, rtx):
    def order(recipe=Recipe(), **more):
        key = key_for(
            "a" * 64, PROFILES, recipe, runtime="tensorrt_rtx", version="1.7", gpu=None, sm="8.9"
        )
        return BuildRequest("swap", graph, key, recipe, "8.9", **more)

    return order


@pytest.fixture
def compiled(monkeypatch):
    """How often the library has compiled; the rest is real."""
    counted = []

    def counting(job, library, **more):
        counted.append(job)
        return compile_plan(job, library, **more)

    monkeypatch.setattr(proven_build, "compile_plan", counting)
    return counted


class Proof:
    """Finds everything right, and so many times as fast."""

    def __init__(self, speedup=2.0, wrong_graph=None, wrong_plan=None):
        self.speedup, self.wrong_graph, self.wrong_plan = speedup, wrong_graph, wrong_plan

    def graph(self, path):
        assert path.is_file()
        if self.wrong_graph:
            raise self.wrong_graph

    def plan(self, path, sidecar):
        assert path.stat().st_size == sidecar.size
        if self.wrong_plan:
            raise self.wrong_plan
        return self.speedup


fine = Proof()


def found(plans, key):
    held = plans.find(key)
    if held:
        held[1].close()
    return held and held[0]


def test_it_is_checked_described_and_kept(order, plans, rtx):
    sidecar = build(order(), plans, rtx, fine)
    assert found(plans, order().key) == sidecar
    assert (sidecar.speedup, sidecar.built_by) == (2.0, rtx.version)
    assert sidecar.seconds > 0


def test_one_that_is_there_is_not_built_again_unless_that_is_wanted(order, plans, rtx, compiled):
    first = build(order(), plans, rtx, fine)
    assert build(order(), plans, rtx, fine) == first
    assert len(compiled) == 1
    assert build(order(), plans, rtx, fine, anew=True).sha256 == first.sha256
    assert len(compiled) == 2


def test_one_that_another_node_has_published_is_fetched(order, plans, rtx, compiled, tmp_path):
    build(order(), plans, rtx, fine)
    plans.publish(order().key)
    settings = replace(plans.settings, store=tmp_path / "other")
    other = Plans(Store(settings.store), settings, plans.place)
    build(order(), other, rtx, fine)
    assert len(compiled) == 1
    assert found(other, order().key)


def test_processes_that_want_the_same_at_once_build_it_once(order, plans, rtx, compiled):
    ready = threading.Barrier(4)

    def work(_):
        ready.wait()
        return build(order(), plans, rtx, fine)

    with ThreadPoolExecutor(4) as pool:
        built = set(pool.map(work, range(4)))
    assert len(built) == len(compiled) == 1


def test_what_is_wrong_is_not_kept(order, plans, rtx):
    wrong = Proof(wrong_plan=DamagedError("it gives something else"))
    with pytest.raises(DamagedError, match="something else"):
        build(order(), plans, rtx, wrong)
    assert found(plans, order().key) is None
    assert plans.store.entries() == []


def test_what_is_slower_is_not_kept_unless_that_is_wanted(order, plans, rtx):
    with pytest.raises(BuildError, match=r"only 0\.80 times as fast"):
        build(order(), plans, rtx, Proof(0.8))
    assert found(plans, order().key) is None
    assert build(order(slower=True), plans, rtx, Proof(0.8)).speedup == 0.8


def test_what_nobody_can_measure_here_is_kept_as_not_measured(order, plans, rtx):
    assert build(order(), plans, rtx, Proof(None)).speedup is None


def test_nothing_is_left_behind_whatever_happens(order, plans, rtx):
    build(order(), plans, rtx, fine)
    with pytest.raises(BuildError):
        build(order(limit_s=-1), plans, rtx, fine, anew=True)
    kept = [path.name for path in (plans.store.root / "plans").iterdir()]
    assert kept == [f"{order().key.digest}.json"]
    assert list((plans.store.root / "partial").iterdir()) == []


def test_half_precision_makes_a_plan_of_its_own(order, plans, rtx):
    full = build(order(), plans, rtx, fine)
    half = build(order(Recipe("fp16")), plans, rtx, fine)
    assert half.sha256 != full.sha256
    assert found(plans, full.key) == full
    assert found(plans, half.key) == half


def test_a_graph_that_is_wrong_in_its_precision_is_not_even_compiled(order, plans, rtx, compiled):
    wrong = Proof(wrong_graph=DamagedError("it gives NaN"))
    with pytest.raises(DamagedError, match="NaN"):
        build(order(Recipe("fp16")), plans, rtx, wrong)
    assert compiled == []
    build(order(), plans, rtx, wrong)  # in its own precision there is nothing to check


def test_eight_bits_need_images(order, plans, rtx):
    with pytest.raises(BuildError, match="--calibrate FOLDER"):
        build(order(Recipe("int8")), plans, rtx, fine)


def test_eight_bits_are_calibrated_once_for_a_model_and_its_images(order, plans, rtx):
    rng, asked = np.random.default_rng(0), []

    def feeds():
        asked.append(1)
        yield from [{"x": rng.random((1, 3, 16, 16), np.float32)} for _ in range(4)]

    wanted = order(Recipe("int8"), feeds=feeds, images="b" * 64)
    first = build(wanted, plans, rtx, fine)
    assert build(wanted, plans, rtx, fine, anew=True).sha256 == first.sha256
    assert len(asked) == 1
    build(replace(wanted, images="c" * 64), plans, rtx, fine, anew=True)
    assert len(asked) == 2


def test_a_plan_of_a_newer_library_is_built_anew_and_takes_its_place(plans, order, rtx, compiled):
    newer = replace(rtx, version="99.0")
    assert build(order(), plans, newer, fine).built_by == "99.0"
    plans.publish(order().key)
    made = build(order(), plans, rtx, fine)
    assert (len(compiled), made.built_by) == (2, rtx.version)
    sidecar, held = plans.find(order().key)
    held.close()
    assert sidecar.built_by == rtx.version
    assert build(order(), plans, newer, fine).built_by == rtx.version
    assert len(compiled) == 2
