"""Memory, contexts and errors of GPUs, by the real bindings, on a driver that is a stand-in."""

from __future__ import annotations

import math

import pytest

from function.runtime.gpu import cuda_errors
from tests.function.runtime.gpu import on_standin
from tests.gpu import standin

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed: make install")

TWO = {"STANDIN_CARDS": "2"}


@pytest.fixture(params=["bindings", "pycuda"])
def binding(request):
    if request.param == "pycuda" and (why := standin.run(on_standin.have_pycuda)):
        pytest.skip(f"PyCUDA is not here: the extra pycuda builds it ({why})")
    return request.param


def test_copies_go_both_ways_in_their_own_context_and_nothing_stays(binding):
    found = standin.run(on_standin.there_and_back, binding, **TWO)
    assert found == {
        "early": False,
        "same": True,
        "held": {"device": 1, "host": 2, "streams": 1, "contexts": 1},
        "left": {"device": 0, "host": 0, "streams": 0, "contexts": 1},
        "places": ["context=1"],
        "wrong": [],
    }


def test_each_context_is_retained_once_by_whatever_thread_and_waiting_sleeps(binding):
    found = standin.run(on_standin.contexts, binding, **TWO)
    assert found["held"] == {"device": 0, "host": 0, "streams": 0, "contexts": 2}
    assert found["flags"] == [on_standin.SLEEPS] * 2
    assert found["wrong"] == []


def test_every_error_of_cuda_is_a_loss_a_shortage_or_neither(binding):
    from cuda.bindings.driver import CUresult

    numbers = {int(each): each for each in CUresult if 0 < int(each) < 999}
    found = standin.run(on_standin.errors, binding, list(numbers))
    assert len(found) == len(numbers) > 90
    for number, each in numbers.items():
        told, lost, short, said = found[str(number)]
        assert told == number, said
        assert lost == (number in cuda_errors.LOST), said
        assert short == (number == cuda_errors.OUT_OF_MEMORY), said
        if binding == "bindings":
            assert said.startswith(each.name)


@pytest.mark.parametrize(
    ("call", "number", "why"),
    [
        ("cuStreamSynchronize", 719, "CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"),
        ("cuStreamSynchronize", 999, "CUDA_ERROR_UNKNOWN: unknown error"),
        ("cuMemAlloc_v2", 201, "CUDA_ERROR_INVALID_CONTEXT: invalid device context"),
    ],
)
def test_after_an_unknown_error_a_copy_tells_that_the_gpu_is_lost(call, number, why):
    found = standin.run(on_standin.unknown, call, number, True)
    assert found["raised"] == "DeviceLostError"
    assert found["lost"] == f"the GPU is lost to this process ({why}: something)"


def test_after_an_unknown_error_a_gpu_that_copies_is_not_lost():
    found = standin.run(on_standin.unknown, None, 0, False)
    left = {"device": 0, "host": 0, "streams": 1, "contexts": 1}
    assert found == {"raised": "RuntimeError", "lost": "", "left": left, "wrong": []}


def test_a_gpu_without_a_free_byte_is_not_lost():
    left = {"device": 0, "host": 0, "streams": 0, "contexts": 1}
    assert standin.run(on_standin.short_probe) == {"lost": None, "left": left}


@pytest.mark.parametrize("failing", [None, "cuMemHostAlloc", "cuDevicePrimaryCtxRetain", "cuInit"])
def test_where_memory_cannot_be_pinned_it_is_ordinary_memory(failing):
    found = standin.run(on_standin.pinned, "bindings", failing, **TWO)
    held = 0 if failing else 1
    assert found == {"right": True, "held": held, "left": 0, "devices": [1] * held, "wrong": []}


def test_pinned_memory_of_a_lost_gpu_goes_without_a_word():
    assert standin.run(on_standin.unpinned_when_lost) == []


def test_what_cannot_be_given_back_keeps_nothing_else():
    found = standin.run(on_standin.closed_half)
    assert found["said"] == "CUDA_ERROR_INVALID_VALUE: invalid argument"
    assert found["left"] == {"device": 1, "host": 0, "streams": 0, "contexts": 1}


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, ["a0", "a1", "a2"]),
        ("2,0", ["a2", "a0"]),
        ("GPU-a2,GPU-a0010203", ["a2", "a0"]),
        ("GPU-a1010203-0405-0607-0809-0a0b0c0d0e0f", ["a1"]),
        ("GPU-a1,GPU-a", ["a1"]),
        ("1,GPU-c", ["a1"]),
    ],
)
def test_cuda_counts_as_nvml_does_whoever_asks_first(visible, expected):
    more = {"STANDIN_CARDS": "3"} | ({"CUDA_VISIBLE_DEVICES": visible} if visible else {})
    cuda, nvml = standin.run(on_standin.order, "function.runtime.gpu.driver", **more)
    assert [each[:2] for each in cuda] == expected
    assert nvml == cuda


def test_a_session_of_onnx_runtime_counts_like_that_too():
    cuda, nvml = standin.run(on_standin.order, "function.runtime.backends.onnx", **TWO)
    assert [each[:2] for each in cuda] == ["a0", "a1"]
    assert nvml == cuda


def test_a_process_sees_the_first_slice_of_a_gpu_that_is_cut():
    more = {"STANDIN_CARDS": "2", "STANDIN_MIG": "1"}
    cuda, nvml = standin.run(on_standin.order, "function.runtime.gpu.driver", **more)
    assert [each[:2] for each in cuda] == ["b0"]
    assert nvml == cuda


def test_whichever_call_fails_in_the_life_of_a_plan_all_is_given_back_in_its_context():
    found, wrong = standin.run(on_standin.failing_anywhere)
    assert wrong == []
    assert len(found) > 40
    gives = {"cuStreamDestroy_v2": "streams", "cuMemFree_v2": "device", "cuMemFreeHost": "host"}
    for call, (_, left) in found.items():
        own = gives.get(call.split()[0])  # what cannot be given back stays, and nothing else
        assert left == ({own: 1} if own else {}), call
    failed = [call for call, (worked, _) in found.items() if not worked]
    assert "cuStreamSynchronize 2" in failed
    assert "cuMemFree_v2 1" not in failed


def test_what_an_older_nvml_does_not_have_is_not_told():
    assert all(map(math.isnan, standin.run(on_standin.vitals)))
