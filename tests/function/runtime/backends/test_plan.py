"""The runner of plans, on a device that is this machine: each size, buffers made once."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from function.runtime.backends.onnx import OnnxEngine
from function.runtime.backends.plan import PlanEngine
from function.runtime.engine import Ports
from function.runtime.scheduling.batcher import Batcher
from function.runtime.scheduling.buckets import Buckets
from function.runtime.scheduling.permits import ComputePermits
from tests.function.runtime.backends.host import HostMemory, OnnxPlan
from tests.graphs import dense, joined, rows, typed

SIZES = (1, 2, 4)


def opened(path, sizes=SIZES, ports=None, items=None):
    memory = HostMemory()
    return PlanEngine(OnnxPlan(path, sizes, memory, items or {}), memory, ports)


@pytest.fixture
def path(tmp_path):
    return dense(tmp_path / "model.onnx", 16, 32, 8)


def test_it_gives_what_onnx_runtime_gives_for_every_count_of_rows(path):
    plan, plain = opened(path), OnnxEngine(path)
    for count in (1, 4, 3, 2, 1, 9, 4, 5, 8):
        batch = rows(count, 16, seed=count)
        (found,) = plan.run(batch)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, plain.run(batch)[0])


def test_only_sizes_that_it_was_compiled_for_are_run(path):
    plan = opened(path)
    for count in (1, 2, 3, 4, 9):
        plan.run(rows(count, 16))
    assert plan._executor.runs == [1, 2, 4, 4, 4, 4, 1]


def test_after_it_was_made_nothing_is_allocated(path):
    plan = opened(path)
    before = plan._memory.allocated
    for count in (4, 1, 3, 2):
        plan.run(rows(count, 16))
    assert plan._memory.allocated == before == 2 * 2  # two tensors, on each side


def test_a_batch_waits_for_the_device_once(path):
    plan = opened(path)
    before = plan._memory.waits
    plan.run(rows(4, 16))
    assert plan._memory.waits == before + 1


def test_results_are_the_callers_own(path):
    plan = opened(path)
    batch = rows(4, 16)
    (first,) = plan.run(batch)
    before = first.copy()
    plan.run(rows(4, 16, seed=1))
    np.testing.assert_array_equal(first, before)


def test_rows_of_an_earlier_batch_do_not_come_back(path):
    plan, plain = opened(path), OnnxEngine(path)
    plan.run(np.full((4, 16), 1e30, np.float32))
    batch = rows(3, 16)
    np.testing.assert_array_equal(plan.run(batch)[0], plain.run(batch)[0])


def test_inputs_come_in_the_order_of_the_family(tmp_path):
    plan = opened(joined(tmp_path / "model.onnx", 4), ports=Ports(("right", "left")))
    left, right = rows(2, 4, 1), rows(2, 4, 2)
    product, difference = plan.run(right, left)
    np.testing.assert_array_equal(product, left * right)
    np.testing.assert_array_equal(difference, left - right)


def test_other_inputs_than_the_familys_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"inputs \('left', 'right'\), not \('left', 'x'\)"):
        opened(joined(tmp_path / "model.onnx", 4), ports=Ports(("left", "x")))


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT16, TensorProto.INT64, TensorProto.UINT8])
def test_whatever_type_a_plan_has_outside_there_is_float32_or_bytes(tmp_path, dtype):
    plan = opened(typed(tmp_path / "model.onnx", dtype))
    batch = np.array([[0, 1, 2.4, 200]], np.float32)
    (found,) = plan.run(batch)
    assert found.dtype == (np.uint8 if dtype == TensorProto.UINT8 else np.float32)
    expected = batch if dtype == TensorProto.FLOAT16 else np.rint(batch)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def weighted(path):
    """[N, 4] times a weight of one value."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4]),
        helper.make_tensor_value_info("weight", TensorProto.FLOAT, [1]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])]
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "weight"], ["y"])], "weighted", inputs, outputs
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def test_a_constant_goes_to_the_device_once_and_counts_in_every_run(tmp_path):
    path, ports = weighted(tmp_path / "model.onnx"), Ports(constants={"weight": 0.5})
    plan = opened(path, ports=ports, items={"weight": (1,)})
    for count in (1, 3, 4):
        batch = rows(count, 4, seed=count)
        np.testing.assert_array_equal(plan.run(batch)[0], batch / 2)
        np.testing.assert_array_equal(OnnxEngine(path, ports=ports).run(batch)[0], batch / 2)


def test_a_graph_of_one_size_says_so(tmp_path):
    plan = opened(dense(tmp_path / "model.onnx", 16, 8, batch=2), sizes=(2,))
    assert plan.items == 2
    assert opened(dense(tmp_path / "any.onnx", 16, 8)).items is None


def test_threads_do_not_mix_their_rows(path):
    plan, plain = opened(path), OnnxEngine(path)
    batches = [rows(1 + seed % 6, 16, seed) for seed in range(80)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda batch: plan.run(batch)[0], batches))
    for batch, output in zip(batches, found, strict=True):
        np.testing.assert_array_equal(output, plain.run(batch)[0])


def test_a_failure_leaves_it_usable(path, monkeypatch):
    plan, plain = opened(path), OnnxEngine(path)
    enqueue = plan._executor.enqueue
    monkeypatch.setattr(plan._executor, "enqueue", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        plan.run(rows(2, 16))
    monkeypatch.setattr(plan._executor, "enqueue", enqueue)
    batch = rows(2, 16, seed=5)
    np.testing.assert_array_equal(plan.run(batch)[0], plain.run(batch)[0])


def test_closing_gives_back_the_plan_first_and_then_its_memory(path):
    plan = opened(path)
    executor, memory = plan._executor, plan._memory
    plan.close()
    assert executor.closed
    assert memory.closed
    plan.close()


def test_one_that_nobody_uses_any_more_gives_back_all_by_itself(path):
    plan = opened(path)
    executor, memory = plan._executor, plan._memory
    del plan
    gc.collect()
    assert executor.closed
    assert memory.closed


def test_behind_a_batcher_each_caller_gets_what_is_its_own(path):
    plan, plain = opened(path), OnnxEngine(path)
    batcher = Batcher("stage", plan, ComputePermits(2), runs=1, buckets=Buckets(SIZES, pads=True))
    batches = [rows(1, 16, seed) for seed in range(40)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda batch: batcher.run(batch)[0], batches))
    for batch, output in zip(batches, found, strict=True):
        np.testing.assert_array_equal(output, plain.run(batch)[0])
    assert set(plan._executor.runs) <= set(SIZES)


def scaled(path):
    """[N, 3, height, width] pooled to half of both."""
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, "h", "w"]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3, "h2", "w2"]),
    ]
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    graph = helper.make_graph([node], "scaled", ends[:1], ends[1:])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def test_items_may_be_smaller_than_what_it_has_room_for(tmp_path):
    path = scaled(tmp_path / "model.onnx")
    plan, plain = opened(path, items={"x": (None, 3, 64, 64)}), OnnxEngine(path)
    rng = np.random.default_rng(0)
    for count, height, width in ((1, 64, 64), (2, 32, 64), (4, 64, 32), (1, 8, 8), (3, 64, 64)):
        batch = rng.random((count, 3, height, width), np.float32)
        np.testing.assert_array_equal(plan.run(batch)[0], plain.run(batch)[0])


def test_items_that_are_larger_are_refused(tmp_path):
    plan = opened(scaled(tmp_path / "model.onnx"), items={"x": (None, 3, 64, 64)})
    with pytest.raises(ValueError, match="not compiled for x of the shape"):
        plan.run(np.zeros((1, 3, 96, 64), np.float32))
    assert plan.run(np.zeros((1, 3, 64, 64), np.float32))
