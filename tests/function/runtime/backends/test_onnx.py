"""Engines on ONNX Runtime: float32 outside, and on the device that was asked for."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto

from function.runtime.backends import onnx as backend
from function.runtime.backends.binding import Binding
from function.runtime.backends.cuda import Cuda
from function.runtime.backends.dtypes import inward
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.engine import NotOnDeviceError
from tests.graphs import dense, joined, rows, typed

VALUES = np.array([[0.0, 1.0, 2.5, 100.0]], np.float32)


@pytest.mark.parametrize(
    "dtype",
    [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT64],
    ids=["float", "half", "double", "int64"],
)
def test_whatever_type_a_graph_has_outside_there_is_float32(tmp_path, dtype):
    (found,) = OnnxEngine(typed(tmp_path / "m.onnx", dtype)).run(VALUES)
    assert found.dtype == np.float32
    expected = np.rint(VALUES) if dtype == TensorProto.INT64 else VALUES
    np.testing.assert_array_equal(found, expected)


def test_whole_numbers_stay_within_their_type(tmp_path):
    engine = OnnxEngine(typed(tmp_path / "m.onnx", TensorProto.UINT8))
    (found,) = engine.run(np.array([[-3.0, 254.6, 255.4, 300.0]], np.float32))
    np.testing.assert_array_equal(found, [[0, 255, 255, 255]])


def test_float32_goes_in_as_it_is():
    assert inward(VALUES, np.float32) is VALUES


def test_an_input_without_arrays_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match=r"the input x of m.onnx is a tensor\(string\)"):
        OnnxEngine(typed(tmp_path / "m.onnx", TensorProto.STRING))


def test_a_library_without_cuda_is_named(tmp_path):
    with pytest.raises(NotOnDeviceError, match="built without it; onnxruntime-gpu has it"):
        OnnxEngine(typed(tmp_path / "m.onnx", TensorProto.FLOAT), cuda=Cuda())


def test_a_session_that_took_the_cpu_unasked_is_refused(tmp_path, monkeypatch):
    # What onnxruntime-gpu does where a driver or a library is missing; here it is not installed.
    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    with (
        pytest.warns(UserWarning, match="CUDAExecutionProvider"),
        pytest.raises(NotOnDeviceError, match=r"m.onnx runs on CPUExecutionProvider, not on CUDA"),
    ):
        OnnxEngine(typed(tmp_path / "m.onnx", TensorProto.FLOAT), cuda=Cuda())


def test_where_only_the_gpu_may_be_used_the_cpu_is_not_even_offered(tmp_path, monkeypatch):
    asked = []

    def session(path, options, providers):
        key = "session.disable_cpu_ep_fallback"
        asked.append((options.get_session_config_entry(key), [name for name, _ in providers]))
        raise NotOnDeviceError("no")

    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(backend.ort, "InferenceSession", session)
    with pytest.raises(NotOnDeviceError):
        OnnxEngine(typed(tmp_path / "m.onnx", TensorProto.FLOAT), cuda=Cuda(alone=True))
    assert asked == [("1", ["CUDAExecutionProvider"])]


def test_the_options_of_the_gpu_are_those_of_the_operator():
    options = Cuda(device=3, search="exhaustive", limit=10**9, graphs=True).options()
    assert options == {
        "device_id": "3",
        "cudnn_conv_algo_search": "EXHAUSTIVE",
        "arena_extend_strategy": "kSameAsRequested",
        "gpu_mem_limit": "1000000000",
        "enable_cuda_graph": "1",
    }
    assert "gpu_mem_limit" not in Cuda().options()


# --- arrays that stay where the device has them; here that device is the CPU ------------------


def bound(path, **options):
    return Binding(ort.InferenceSession(str(path)), "cpu", 0, **options)


@pytest.mark.parametrize("graphs", [False, True], ids=["plain", "graphs"])
def test_bound_runs_give_what_plain_runs_give_whatever_the_order_of_sizes(tmp_path, graphs):
    path = dense(tmp_path / "m.onnx", 16, 32, 8)
    plain, binding = OnnxEngine(path), bound(path, graphs=graphs)
    for number, size in enumerate((1, 4, 2, 4, 1, 8, 4, 2)):
        batch = rows(size, 16, seed=number)
        np.testing.assert_array_equal(binding.run({"x": batch})[0], plain.run(batch)[0])


def test_results_are_not_overwritten_by_the_next_run(tmp_path):
    binding = bound(dense(tmp_path / "m.onnx", 16, 8), graphs=True)
    batches = [rows(2, 16, seed) for seed in range(4)]
    binding.run({"x": batches[0]})
    first = binding.run({"x": batches[0]})[0]
    before = first.copy()
    for batch in batches[1:]:
        binding.run({"x": batch})
    np.testing.assert_array_equal(first, before)


def test_pinned_memory_is_what_the_largest_needs_and_is_made_once(tmp_path):
    made = []

    def pinned(shape, dtype):
        made.append(shape)
        return np.empty(shape, dtype)

    binding = bound(joined(tmp_path / "m.onnx", 4), pinned=pinned)
    for size in (2, 1, 2, 1, 3, 2, 1):
        binding.run({"left": rows(size, 4), "right": rows(size, 4, 1)})
    assert made == [(32,), (32,), (48,), (48,)]


def test_arrays_are_kept_for_the_shapes_that_were_used_last(tmp_path):
    path = dense(tmp_path / "m.onnx", 16, 8)
    plain, binding = OnnxEngine(path), bound(path)
    for size in (*range(1, 40), 1, 39, 2):
        batch = rows(size, 16, seed=size)
        np.testing.assert_array_equal(binding.run({"x": batch})[0], plain.run(batch)[0])
    assert len(binding._sets) == 16
    assert ((1, 16),) in binding._sets


class Seen:
    """A session that notes the thread and the graph of each run; the rest is real."""

    def __init__(self, path):
        self.session = ort.InferenceSession(str(path))
        self.io_binding, self.get_outputs = self.session.io_binding, self.session.get_outputs
        self.threads, self.graphs = set(), []

    def run_with_iobinding(self, binding, options):
        self.threads.add(threading.get_ident())
        self.graphs.append(options.get_run_config_entry("gpu_graph_id"))
        self.session.run_with_iobinding(binding, options)


def test_with_graphs_one_thread_runs_all_and_no_graph_has_the_number_that_is_reserved(tmp_path):
    session = Seen(dense(tmp_path / "m.onnx", 16, 8))
    binding = Binding(session, "cpu", 0, graphs=True)
    for size in (1, 4):
        binding.run({"x": rows(size, 16)})
    sizes = [1, 4] * 10
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda size: binding.run({"x": rows(size, 16)}), sizes))
    assert len(session.threads) == 1
    assert session.graphs[:2] == ["-1", "-1"]
    assert sorted(session.graphs[2:]) == ["1"] * 10 + ["2"] * 10


def test_threads_do_not_mix_their_inputs(tmp_path):
    path = dense(tmp_path / "m.onnx", 16, 8)
    plain, binding = OnnxEngine(path), bound(path)
    batches = [rows(1 + seed % 3, 16, seed) for seed in range(60)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda batch: binding.run({"x": batch})[0], batches))
    for batch, output in zip(batches, found, strict=True):
        np.testing.assert_array_equal(output, plain.run(batch)[0])


def test_after_a_shortage_the_arena_gives_back_what_it_does_not_use(tmp_path):
    session, seen = ort.InferenceSession(str(dense(tmp_path / "m.onnx", 16, 8))), []

    class Short:
        """A session in which the second run finds no memory; the first and the rest are real."""

        io_binding, get_outputs = session.io_binding, session.get_outputs

        def run_with_iobinding(self, binding, options):
            key = "memory.enable_memory_arena_shrinkage"
            seen.append(options.get_run_config_entry(key) if len(seen) == 2 else None)
            if len(seen) == 2:
                raise RuntimeError("Failed to allocate memory for requested buffer of size 9")
            session.run_with_iobinding(binding, options)

    binding = Binding(Short(), "cpu", 0)
    batch = {"x": rows(2, 16)}
    binding.run(batch)
    with pytest.raises(RuntimeError, match="Failed to allocate"):
        binding.run(batch)
    binding.run(batch)
    assert seen == [None, None, "cpu:0"]
