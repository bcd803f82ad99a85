"""A plan is proven where it will run: on its kind of GPU, in a process with its library only."""

from __future__ import annotations

import pytest

from function.runtime import proof
from function.runtime.engine import NotOnDeviceError
from tests.function.runtime import on_standin
from tests.gpu import standin
from tests.graphs import convolved
from warmup.plans import tensorrt

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed: make install")


def test_it_is_run_in_a_process_that_has_not_loaded_what_has_built_it(tmp_path):
    found = standin.run(on_standin.proven, "noting", "8.9", str(tmp_path / "plan"))
    assert found == [1.5, "([], 'warmup.plans.tensorrt')"]


def test_one_for_another_gpu_is_built_and_not_run(tmp_path):
    found = standin.run(on_standin.proven, "noting", "12.0", str(tmp_path / "plan"))
    assert found == [None, ""]


def test_one_that_ends_the_process_is_wrong_and_ends_no_other(tmp_path):
    found = standin.run(on_standin.proven, "ending", "8.9", str(tmp_path / "plan"))
    assert found == "swap in fp32: the process that ran the plan has ended"


@pytest.mark.parametrize(
    "error",
    [
        NotOnDeviceError("m.onnx runs on CPUExecutionProvider, not on CUDAExecutionProvider"),
        RuntimeError("CUDNN_STATUS_NOT_INITIALIZED: libcudnn.so.9 cannot be loaded"),
    ],
)
def test_where_onnx_runtime_cannot_use_the_gpu_nothing_is_measured(tmp_path, monkeypatch, error):
    class Elsewhere:
        def __init__(self, *_, **__):
            raise error

    graph = convolved(tmp_path / "model.onnx")
    made = proof.Proof("swap", graph, [[(1, 3, 16, 16)]], "fp32")
    right = proof.OnnxEngine(graph)
    right.close = lambda: None
    monkeypatch.setattr(proof, "runner_of", lambda key: None)
    monkeypatch.setattr(proof, "open_plan", lambda *_, **__: right)
    made._model  # noqa: B018 (on the CPU, which is there)
    monkeypatch.setattr(proof, "OnnxEngine", Elsewhere)
    assert made.run_plan(graph, on_standin.sidecar("8.9")) is None


def test_a_plan_of_rtx_is_run_by_rtx_also_where_tensorrt_is_installed(monkeypatch):
    monkeypatch.setattr(tensorrt, "library", lambda name: name)
    key = on_standin.sidecar("8.9").key
    assert tensorrt.runner_of(key) == tensorrt.RTX
