"""Plans on TensorRT: refused before anything breaks, and run as they were compiled."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from function.runtime.backends import tensorrt as backend
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.backends.tensorrt import NoPlanError, open_kept, open_plan
from function.runtime.engine import NotOnDeviceError, Ports
from function.runtime.gpu import device
from function.runtime.gpu.options import GpuOptions
from tests.function.runtime.backends import trt
from tests.function.runtime.backends.host import HostMemory
from tests.graphs import convolved, dense, joined, rows
from tests.warmup.plans.nvml import Card
from warmup.models.store import Store
from warmup.plans import nvml as gpus
from warmup.plans.build import BuildJob, compile_plan
from warmup.plans.plan_key import Recipe, Sidecar, key_for, profiles_for
from warmup.plans.stored import Plans, described
from warmup.plans.tensorrt import FULL, Library, library
from warmup.settings.settings import StoreSettings

LIBRARY = Library(FULL, trt.MODULE, "11.4.0")
PROFILES = profiles_for([("", (16,), (16,))], (1, 4))


def key(recipe=Recipe(), facts=None):
    facts = facts or gpus.Gpu("GPU-0", "NVIDIA H100", "9.0", "580.65.06", "13.1")
    return key_for("a" * 64, PROFILES, recipe, runtime=FULL, version="11.4.0", gpu=facts)


@pytest.fixture
def on_host(monkeypatch):
    """The device is this machine, and the library the stand-in; gives the memory."""
    memory = HostMemory()
    monkeypatch.setattr(device, "check", lambda number: None)
    monkeypatch.setattr(device, "CudaMemory", lambda number: memory)
    monkeypatch.setattr(trt.Runtime, "plans", {})
    return memory


def opened(on_host, tmp_path, graph, sizes, ports=None, built_by="11.4.0", items=None):
    trt.Runtime.plans[b"plan"] = (graph, sizes, on_host, items or {})
    path = tmp_path / "plan"
    path.write_bytes(b"plan")
    return open_plan(path, Sidecar(key(), 4, "b" * 64, built_by), LIBRARY, ports=ports)


def test_it_gives_what_onnx_runtime_gives(on_host, tmp_path):
    graph = dense(tmp_path / "model.onnx", 16, 32, 8)
    plan, plain = opened(on_host, tmp_path, graph, [1, 4]), OnnxEngine(graph)
    for count in (1, 4, 3, 2, 9):
        batch = rows(count, 16, seed=count)
        np.testing.assert_array_equal(plan.run(batch)[0], plain.run(batch)[0])
    assert (plan.provider, plan.items) == ("TensorRT", None)


def test_inputs_are_told_apart_by_name(on_host, tmp_path):
    graph = joined(tmp_path / "model.onnx", 4)
    plan = opened(on_host, tmp_path, graph, [2], ports=Ports(("right", "left")))
    left, right = rows(2, 4, 1), rows(2, 4, 2)
    np.testing.assert_array_equal(plan.run(right, left)[1], left - right)


def test_a_graph_of_one_size_says_so(on_host, tmp_path):
    graph = dense(tmp_path / "model.onnx", 16, 8, batch=2)
    assert opened(on_host, tmp_path, graph, [2]).items == 2


def test_all_sizes_share_one_piece_of_scratch_memory(on_host, tmp_path):
    plan = opened(on_host, tmp_path, dense(tmp_path / "model.onnx", 16, 8), [1, 4])
    engine = plan._executor._engine
    assert {context.scratch[1] for context in engine.contexts} == {4000}
    assert len({context.scratch[0] for context in engine.contexts}) == 1


def test_what_the_library_refuses_is_an_error_that_says_what_it_said(on_host, tmp_path):
    path = tmp_path / "plan"
    path.write_bytes(b"of another version")
    with pytest.raises(NotOnDeviceError, match="refuses the plan: the engine plan file is not"):
        open_plan(path, Sidecar(key(), 1, "b" * 64, "11.4.0"), LIBRARY)
    assert on_host.closed


def test_a_plan_of_a_newer_library_is_not_even_tried(on_host, tmp_path):
    graph = dense(tmp_path / "model.onnx", 16, 8)
    with pytest.raises(NotOnDeviceError, match=r"built by TensorRT 11\.5, which is newer"):
        opened(on_host, tmp_path, graph, [1], built_by="11.5")


def test_a_shape_that_it_was_not_compiled_for_is_an_error(on_host, tmp_path):
    graph = dense(tmp_path / "model.onnx", 16, 8)
    plan = opened(on_host, tmp_path, graph, [1], items={"x": (None, 16)})
    with pytest.raises(ValueError, match="was not compiled for x of the shape"):
        plan.run(rows(1, 17))


# --- which plan --------------------------------------------------------------------------------


@pytest.fixture
def plans(tmp_path):
    store = Store(tmp_path / "store")
    return Plans(store, StoreSettings(store=store.root))


@pytest.fixture
def kept(on_host, plans, cards, tmp_path, monkeypatch):
    """Opens the plan of the store, on the GPU that was put into this machine."""
    graph = dense(tmp_path / "model.onnx", 16, 8)
    trt.Runtime.plans[b"plan"] = (graph, [1, 4], on_host, {})
    monkeypatch.setattr(backend, "runner", lambda flags: LIBRARY)

    def kept(*found, recipe=Recipe(), plans=plans, **more):
        cards(*(found or (Card(0),)), **more)
        how = GpuOptions(plans=plans, recipe=recipe)
        return open_kept(how, lambda library, facts: [key(recipe, facts)], 0, Ports())

    return kept


def test_the_plan_for_this_gpu_is_the_one_that_is_run(kept, plans):
    plans.keep(described(key(), b"plan", built_by="11.4.0", seconds=1), b"plan")
    assert kept().run(rows(4, 16))


def test_a_plan_that_was_shared_since_the_start_is_fetched(kept, plans, tmp_path):
    shared = replace(plans, place=str(tmp_path / "shared"))
    other = replace(shared, store=Store(tmp_path / "other"))
    other.keep(described(key(), b"plan", built_by="11.4.0", seconds=1), b"plan")
    other.publish(key())
    with pytest.raises(NoPlanError):
        kept()
    assert kept(plans=shared).run(rows(2, 16))


def test_a_shared_plan_that_is_damaged_is_no_plan(kept, plans, tmp_path):
    shared = replace(plans, place=str(tmp_path / "shared"))
    folder = tmp_path / "shared" / "plans" / key().digest
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("<html>")
    with pytest.raises(NoPlanError):
        kept(plans=shared)


@pytest.mark.parametrize(
    ("card", "more"),
    [
        (Card(0, name="NVIDIA A100", sm=(8, 0)), {}),
        (Card(0, slices=(0,)), {}),
        (Card(0), {"driver": "590.10"}),
        (Card(0), {"cuda": 13020}),
        (Card(0), {"recipe": Recipe("fp16")}),
    ],
    ids=["gpu", "slice", "driver", "cuda", "precision"],
)
def test_a_plan_for_anything_else_is_not(kept, plans, card, more):
    plans.keep(described(key(), b"plan", built_by="11.4.0", seconds=1), b"plan")
    with pytest.raises(NoPlanError, match="`ember engines build` makes it") as caught:
        kept(card, **more)
    assert caught.value.may_come


# --- without a GPU, and with one ---------------------------------------------------------------


def test_without_a_driver_there_is_an_error_and_no_segmentation_fault(tmp_path, rtx):
    try:
        device.check(0)
    except NotOnDeviceError:
        pass
    else:
        pytest.skip("is about machines without a GPU")
    graph = convolved(tmp_path / "model.onnx")
    job = BuildJob(graph, profiles_for([("", (3, 16, 16), (3, 16, 16))], (1,)), Recipe(), "8.9")
    (tmp_path / "plan").write_bytes(compile_plan(job, rtx))
    code = (
        "import sys; from pathlib import Path\n"
        "from function.runtime.backends.tensorrt import open_plan\n"
        "from warmup.plans.plan_key import Sidecar\n"
        "from warmup.plans.tensorrt import RTX, library\n"
        "try: open_plan(Path(sys.argv[1]), Sidecar(None, 1, '', '1.0'), library(RTX))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "plan")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("NotOnDeviceError no NVIDIA driver can be used")


def test_the_names_that_are_called_are_those_of_the_library(rtx):
    for kind in (trt.Runtime, trt.ICudaEngine, trt.IExecutionContext):
        ours = {"names", "plans", "plan", "sizes", "contexts"}
        real = getattr(rtx.module, kind.__name__)
        assert [name for name in trt.used(kind) if not hasattr(real, name) | (name in ours)] == []
    assert {"num_io_tensors", "num_optimization_profiles"} <= set(dir(rtx.module.ICudaEngine))
    assert {"INPUT", "OUTPUT"} <= set(dir(rtx.module.TensorIOMode))
    assert hasattr(rtx.module.ExecutionContextAllocationStrategy, "USER_MANAGED")
    assert set(backend._DTYPES) <= set(dir(rtx.module.DataType))
    config = {
        "create_runtime_cache",
        "set_runtime_cache",
        "set_execution_context_allocation_strategy",
    }
    assert config <= set(dir(rtx.module.IRuntimeConfig))
    assert {"serialize", "deserialize"} <= set(dir(rtx.module.IRuntimeCache))


@pytest.mark.gpu
def test_on_a_gpu_a_plan_gives_what_the_cpu_gives(gpu, tmp_path):
    for name in ("tensorrt", "tensorrt_rtx"):
        try:
            found = library(name)
        except Exception as error:
            reason = str(error)
            continue
        graph = convolved(tmp_path / "model.onnx")
        job = BuildJob(graph, profiles_for([("", (3, 16, 16), (3, 16, 16))], (1, 4)), Recipe())
        (tmp_path / "plan").write_bytes(compile_plan(job, found))
        sidecar = Sidecar(key(facts=gpu), 1, "b" * 64, found.version)
        plan, plain = open_plan(tmp_path / "plan", sidecar, found), OnnxEngine(graph)
        for size in (1, 4, 3):
            batch = np.random.default_rng(size).random((size, 3, 16, 16), np.float32)
            np.testing.assert_allclose(plan.run(batch)[0], plain.run(batch)[0], atol=1e-3)
        plan.close()
        return
    pytest.skip(reason)
