"""Graphs that take cutouts are made whole, the same each time, or not at all."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper

from function.faces import families
from function.runtime import onnxfile
from function.runtime.backends.binding import Binding
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.backends.plan import PlanEngine
from function.runtime.engine import Ports
from function.weights import cutout, half, proof
from tests import neural
from tests.function.runtime.backends.host import HostMemory, OnnxPlan
from tests.graphs import swapping
from warmup.plans.build import BuildJob, compile_plan
from warmup.plans.plan_key import Recipe, profiles_for
from warmup.plans.precision import EXACT
from warmup.plans.precision import half as half_of


@pytest.mark.parametrize(
    ("role", "family", "side"),
    [
        ("swap", "inswapper_128", 384),
        ("swap", "simswap_256", 384),
        ("swap", "uniface_256", 384),
        ("swap", "blendswap_256", 384),
        ("enhance", "gpen_256", 384),
        ("enhance", "codeformer_512", 768),
    ],
)
def test_the_graph_has_the_shapes_of_its_family_and_is_the_same_each_time(
    role, family, side, tmp_path
):
    source = neural.make(tmp_path / "a.onnx", family, dynamic=role == "swap" or None)
    outs = [tmp_path / "b.onnx", tmp_path / "c.onnx"]
    assert [cutout.make(source, out, role, family) for out in outs] == [side, side]
    assert outs[0].read_bytes() == outs[1].read_bytes()
    onnx.checker.check_model(str(outs[0]), full_check=True)
    graph, found = onnxfile.read(outs[0]), families.FAMILIES[role, family].cut(side)
    items = {each.name: each.item for each in graph.inputs if each.name not in found.constants}
    named = [*items] if len(found.inputs) < len(items) else list(found.inputs)
    assert [items[name] for name in named] == list(found.items)
    assert [(each.kind, each.item) for each in graph.outputs] == [("uint8", (side, side, 3))]
    assert graph.items == onnxfile.read(source).items
    assert f"cutouts of {side} pixels" in graph.metadata["ember.change"]


def test_a_network_for_one_item_cannot_make_the_parts_of_a_face(tmp_path):
    source = neural.make(tmp_path / "a.onnx", "inswapper_128", dynamic=False)
    with pytest.raises(proof.UnprovenError, match=r"takes 4 items.*`ember models batch`"):
        cutout.make(source, tmp_path / "b.onnx", "swap", "inswapper_128")
    source = neural.make(tmp_path / "c.onnx", "simswap_256", dynamic=False)
    cutout.make(source, tmp_path / "d.onnx", "swap", "simswap_256")
    assert onnxfile.read(tmp_path / "d.onnx").items == 1


@pytest.mark.parametrize(
    ("role", "family", "why"),
    [
        ("swap", "simswap_256", "no network of the family simswap_256"),
        ("identity", "arcface", "only networks for swap and enhance"),
    ],
)
def test_what_is_no_such_network_is_refused(role, family, why, tmp_path):
    source = swapping(tmp_path / "a.onnx", 128, "same")
    with pytest.raises(proof.UnprovenError, match=why):
        cutout.make(source, tmp_path / "b.onnx", role, family)
    assert not (tmp_path / "b.onnx").exists()


def test_a_graph_that_makes_something_else_is_not_kept(tmp_path, monkeypatch):
    source = swapping(tmp_path / "a.onnx", 128, "invert", shift=1.0)
    monkeypatch.setattr(cutout, "STEPS", 2 * cutout.STEPS)  # so only half of a face is put back
    with pytest.raises(proof.UnprovenError, match=r"differs by 1[0-9]{2} levels of 255"):
        cutout.make(source, tmp_path / "b.onnx", "swap", "inswapper_128")
    assert not (tmp_path / "b.onnx").exists()


def test_in_float16_places_in_the_picture_stay_exact(tmp_path):
    source = neural.make(tmp_path / "a.onnx", "simswap_256", dynamic=True)
    cutout.make(source, tmp_path / "b.onnx", "swap", "simswap_256")
    half.make(tmp_path / "b.onnx", tmp_path / "c.onnx")
    model = onnx.load(tmp_path / "c.onnx")
    ours = [each for each in model.graph.initializer if each.name.startswith(EXACT)]
    assert len(ours) > 20
    assert all(numpy_helper.to_array(each).dtype in (np.float32, np.int64) for each in ours)
    assert onnxfile.read(tmp_path / "c.onnx").precision == "float16"
    rng = np.random.default_rng(0)
    fed = [rng.integers(0, 256, (1, 384, 384, 3), np.uint8), *[_turned()] * 2]
    fed += [np.full((1, 256, 256), 255, np.uint8), np.ones((1, 512), np.float32)]
    full, small = (OnnxEngine(tmp_path / name).run(*fed)[0] for name in ("b.onnx", "c.onnx"))
    assert np.abs(full.astype(int) - small).max() <= 8
    assert np.abs(full.astype(int) - fed[0]).max() > 50


def _turned():
    return np.array([[[0.006, 0.002, -0.9], [-0.002, 0.006, -0.6]]], np.float32)


def _faces(count):
    """Inputs for so many faces, of inswapper with cutouts."""
    rng = np.random.default_rng(count)
    return [
        rng.integers(0, 256, (count, 384, 384, 3), np.uint8),
        *[np.repeat(_turned(), count, 0)] * 2,
        rng.integers(0, 256, (count, 256, 256), np.uint8),
        rng.standard_normal((count, 512), np.float32),
    ]


@pytest.fixture(scope="module")
def inverting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inverting")
    source = swapping(folder / "a.onnx", 128, "invert", shift=1.0)
    cutout.make(source, folder / "b.onnx", "swap", "inswapper_128")
    return folder / "b.onnx"


def test_the_runners_of_plans_and_of_cuda_give_what_the_cpu_gives(inverting):
    right, memory = OnnxEngine(inverting), HostMemory()
    names = [*families.CUTOUT, "source"]
    plan = PlanEngine(OnnxPlan(inverting, [1, 4], memory, {}), memory, Ports(tuple(names)))
    cuda = Binding(ort.InferenceSession(str(inverting)), "cpu", 0)
    for count in (1, 3, 4):  # 3 are filled up to 4
        fed = _faces(count)
        (wanted,) = right.run(*fed)
        (planned,) = plan.run(*fed)
        (bound,) = cuda.run(dict(zip(names, fed, strict=True)))
        assert wanted.dtype == planned.dtype == bound.dtype == np.uint8
        assert (planned == wanted).all()
        assert (bound == wanted).all()
        assert np.abs(wanted.astype(int) - fed[0]).max() > 100
    plan.close()


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_tensorrt_compiles_all_of_it(precision, tmp_path, rtx):
    source = neural.make(tmp_path / "a.onnx", "hyperswap_256", dynamic=True)
    graph = tmp_path / "b.onnx"
    cutout.make(source, graph, "swap", "hyperswap_256")
    if precision == "fp16":
        graph = half_of(graph, tmp_path / "c.onnx")
    found = families.FAMILIES["swap", "hyperswap_256"].cut(384)
    shapes = [(name, item, item) for name, item in zip(found.inputs, found.items, strict=True)]
    job = BuildJob(graph, profiles_for(shapes, (1, 4)), Recipe(precision), "8.9")
    assert len(compile_plan(job, rtx)) > 100_000
