"""Plans on TensorRT: refused before anything breaks, and run as they were compiled."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from function.runtime.backends import kernel_cache
from function.runtime.backends import tensorrt as backend
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.backends.tensorrt import NoPlanError, open_kept, open_plan
from function.runtime.engine import NotOnDeviceError, Ports
from function.runtime.gpu import device
from function.runtime.gpu.device_health import is_lost
from function.runtime.gpu.options import GpuOptions
from function.runtime.out_of_memory import is_out_of_memory
from tests.function.runtime.backends import trt
from tests.function.runtime.backends.host import HostMemory
from tests.graphs import convolved, dense, joined, rows
from tests.warmup.plans.nvml import Card
from warmup.failures import UnavailableError
from warmup.models.store import Store
from warmup.plans import nvml as gpus
from warmup.plans.build import BuildJob, compile_plan
from warmup.plans.plan_key import Recipe, Sidecar, key_for, profiles_for
from warmup.plans.stored import Plans, described
from warmup.plans.tensorrt import FULL, RTX, Library, library, listening, logger
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
    trt.LIFE.clear()
    trt.FAULTS.clear()
    yield memory
    trt.FAULTS.clear()


def opened(
    on_host,
    tmp_path,
    graph,
    sizes,
    ports=None,
    built_by="11.4.0",
    items=None,
    recipe=Recipe(),
    **how,
):
    trt.Runtime.plans[b"plan"] = (graph, sizes, on_host, items or {})
    path, sidecar = tmp_path / "plan", Sidecar(key(recipe), 4, "b" * 64, built_by)
    path.write_bytes(b"plan")
    return open_plan(path, sidecar, how.pop("library", LIBRARY), ports=ports, **how)


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
    with pytest.raises(NoPlanError, match=r"built by TensorRT 11\.5, which is newer"):
        opened(on_host, tmp_path, graph, [1], built_by="11.5")


def test_a_shape_that_it_was_not_compiled_for_is_an_error(on_host, tmp_path):
    graph = dense(tmp_path / "model.onnx", 16, 8)
    plan = opened(on_host, tmp_path, graph, [1], items={"x": (None, 16)})
    with pytest.raises(ValueError, match="was not compiled for x of the shape"):
        plan.run(rows(1, 17))


# --- what goes wrong, in the words of the library ----------------------------------------------

REFUSALS = {
    "create_execution_context": (["Error Code 1: Cuda Runtime (out of memory)"], None),
    "set_optimization_profile_async": (
        ["CUDA error 2 launching __myl_Move kernel"],
        RuntimeError("Error in set optimization profile async."),
    ),
}


@pytest.mark.parametrize("call", REFUSALS)
def test_a_plan_that_cannot_be_made_ready_goes_before_its_memory(on_host, tmp_path, call):
    graph = dense(tmp_path / "model.onnx", 16, 8)
    trt.FAULTS[call] = REFUSALS[call]
    said = REFUSALS[call][0][0]
    with pytest.raises(NotOnDeviceError, match=re.escape(f"in batches of 1: {said}")) as caught:
        opened(on_host, tmp_path, graph, [1, 4])
    assert on_host.closed
    contexts = call != "create_execution_context"
    assert [("IExecutionContext", False, True)] * contexts + [
        ("ICudaEngine", False, True)
    ] == trt.LIFE
    assert caught.value


def test_a_plan_with_other_inputs_goes_before_its_memory_too(on_host, tmp_path):
    graph = joined(tmp_path / "model.onnx", 4)
    with pytest.raises(ValueError, match="not") as caught:
        opened(on_host, tmp_path, graph, [2], ports=Ports(("right", "wrong")))
    assert on_host.closed
    assert trt.LIFE == [("IExecutionContext", False, True), ("ICudaEngine", False, True)]
    assert caught.value


def test_a_plan_of_a_lost_gpu_still_goes_before_its_memory(on_host, tmp_path, monkeypatch):
    plan = opened(on_host, tmp_path, dense(tmp_path / "model.onnx", 16, 8), [1])

    def gone():
        raise RuntimeError("CUDA_ERROR_LAUNCH_FAILED")

    monkeypatch.setattr(on_host, "current", gone)
    plan.close()
    assert [name for name, memory_is_gone, _ in trt.LIFE if not memory_is_gone] == [
        "IExecutionContext",
        "ICudaEngine",
    ]
    assert on_host.closed


@pytest.mark.parametrize(
    ("said", "lost", "short"),
    [
        (["CUDA error 2 launching __myl_Move kernel"], False, True),
        (["CUDA error 2 launching a kernel; " * 9 + "CUDA error 719 launching it"], True, False),
        (["CUDA error 2 launching a kernel", "cudaError 702: the launch timed out"], True, False),
        (["shapes do not fit"], False, False),
        ([], False, False),
    ],
)
def test_what_the_library_says_of_a_run_is_what_it_failed_of(on_host, tmp_path, said, lost, short):
    plan = opened(on_host, tmp_path, dense(tmp_path / "model.onnx", 16, 8), [1])
    trt.FAULTS["execute_async_v3"] = (["CUDA error 700 of another run"], True)
    plan.run(rows(1, 16))
    trt.FAULTS["execute_async_v3"] = (said, False)
    with pytest.raises(RuntimeError, match="cannot be executed: ") as caught:
        plan.run(rows(1, 16))
    assert is_lost(caught.value) == lost
    assert is_out_of_memory(caught.value) == short
    trt.FAULTS.clear()
    assert plan.run(rows(1, 16))


def test_a_library_has_one_logger_for_ever(on_host, tmp_path):
    graph = dense(tmp_path / "model.onnx", 16, 8)
    for _ in range(2):
        on_host.closed = False
        opened(on_host, tmp_path, graph, [1]).close()
    gc.collect()
    (first,) = trt._logger
    assert first is logger(trt.MODULE)
    first.log(trt.ILogger.Severity.ERROR, "a message of the whole process")


def test_what_a_library_says_in_other_threads_is_heard_by_whoever_listens():
    error = trt.ILogger.Severity.ERROR
    with listening(trt.MODULE) as outer, ThreadPoolExecutor(1) as pool:
        pool.submit(logger(trt.MODULE).log, error, "of a thread of its own").result()

        def other():
            with listening(trt.MODULE) as said:
                logger(trt.MODULE).log(error, "of another call")
            return said.text

        assert pool.submit(other).result() == "of another call"
    assert outer.text == "of a thread of its own"


def test_the_full_library_may_run_compatible_plans_by_the_lean_runtime(
    on_host, tmp_path, monkeypatch
):
    graph, recipe = dense(tmp_path / "model.onnx", 16, 8), Recipe(flags=("version-compatible",))
    with pytest.raises(UnavailableError, match=r"make install EXTRAS=tensorrt-lean"):
        opened(on_host, tmp_path, graph, [1], recipe=recipe)
    monkeypatch.setattr(backend, "lean_runtime", lambda: tmp_path / "libnvinfer_lean.so.11")
    on_host.closed = False
    plan = opened(on_host, tmp_path, graph, [1], recipe=recipe)
    runtime = plan._executor._full
    assert runtime.engine_host_code_allowed
    assert runtime._loaded == str(tmp_path / "libnvinfer_lean.so.11")


# --- kernels that TensorRT-RTX compiles ---------------------------------------------------------

RTX_LIBRARY = Library(RTX, trt.MODULE, "11.4.0")


@pytest.fixture
def rtx_plan(on_host, tmp_path):
    graph, kept = dense(tmp_path / "model.onnx", 16, 8), tmp_path / "kernels"

    def opens():
        on_host.closed = False
        plan = opened(on_host, tmp_path, graph, [1, 4], library=RTX_LIBRARY, kept=kept)
        return plan, kept

    return opens


def test_kernels_are_kept_as_soon_as_a_new_shape_has_run_and_not_only_at_the_end(rtx_plan):
    plan, kept = rtx_plan()
    assert not kept.exists()
    plan.run(rows(1, 16))
    first = kept.read_bytes()
    plan.run(rows(4, 16))
    both = kept.read_bytes()
    assert len(both) > len(first) > 0
    written = kept.stat().st_mtime_ns
    plan.run(rows(4, 16))
    plan.close()
    assert kept.stat().st_mtime_ns == written
    again, _ = rtx_plan()
    again.run(rows(1, 16))
    assert kept.stat().st_mtime_ns == written


def test_a_process_that_lost_its_gpu_leaves_the_kernels_as_they_are(rtx_plan, on_host, monkeypatch):
    plan, kept = rtx_plan()
    plan.run(rows(1, 16))
    before = kept.read_bytes()

    def lose():
        raise RuntimeError("CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure")

    monkeypatch.setattr(on_host, "wait", lose)
    with pytest.raises(RuntimeError, match="LAUNCH_FAILED"):
        plan.run(rows(4, 16))
    plan.close()
    assert kept.read_bytes() == before


def test_kernels_that_are_refused_are_logged_counted_and_made_anew(rtx_plan, caplog):
    plan, kept = rtx_plan()
    plan.run(rows(1, 16))
    plan.close()
    right = kept.read_bytes()
    kept.write_bytes(b"of another GPU")
    before, text = kernel_cache.refused(), "device properties mismatch; rejecting cache"
    trt.FAULTS["deserialize"] = ([text], False)
    again, _ = rtx_plan()
    (record,) = [each for each in caplog.records if "refused" in each.message]
    assert record.reason == text
    assert kernel_cache.refused() == before + 1
    again.run(rows(1, 16))
    assert kept.read_bytes() == right


def test_kernels_that_cannot_be_written_fail_no_run(rtx_plan):
    plan, kept = rtx_plan()
    kept.mkdir()
    assert plan.run(rows(1, 16))


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


def test_each_gpu_has_kernels_of_its_own(kept, plans, monkeypatch):
    plans.keep(described(key(), b"plan", built_by="11.4.0", seconds=1), b"plan")
    seen, opens = [], backend.open_plan

    def noting(*arguments, **how):
        seen.append(how["kept"])
        return opens(*arguments, **how)

    monkeypatch.setattr(backend, "open_plan", noting)
    plans_of_both = [kept(Card(0)), kept(Card(1))]
    assert len(plans_of_both) == 2
    assert [each.name for each in seen] == [f"kernels-{key().digest}-GPU-{n}" for n in (0, 1)]


def test_a_plan_of_a_newer_library_may_still_come_from_one_of_this(kept, plans):
    plans.keep(described(key(), b"plan", built_by="11.5.0", seconds=1), b"plan")
    with pytest.raises(NoPlanError) as caught:
        kept()
    assert caught.value.may_come


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
        ours = {"names", "plans", "plan", "sizes", "contexts", "engine_host_code_allowed"}
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
