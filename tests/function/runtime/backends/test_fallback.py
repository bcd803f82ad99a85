"""From the best backend to the least: what fails is reported, what may not serve does not."""

from __future__ import annotations

import pytest

from function.runtime.backends.fallback import SkippedBackend, allowed, open_first
from function.runtime.engine import NotOnDeviceError
from function.runtime.gpu.device_health import DeviceLostError

ALL = ("tensorrt", "cuda", "cpu")
GPU = ("tensorrt", "cuda")


@pytest.mark.parametrize(
    ("backends", "degraded", "gpu", "expected"),
    [
        (ALL, False, False, GPU),
        (ALL, True, False, ALL),
        (ALL, False, True, GPU),
        (ALL, True, True, GPU),
        (GPU, False, False, GPU),
        (("cpu",), False, False, ("cpu",)),
        (("cpu", "cuda"), False, False, ("cpu", "cuda")),
    ],
)
def test_the_cpu_stands_in_for_a_gpu_only_where_that_is_allowed(backends, degraded, gpu, expected):
    assert allowed(backends, allow_degraded=degraded, require_gpu=gpu) == expected


class Opener:
    def __init__(self, **failures):
        self.failures, self.tried = failures, []

    def __call__(self, backend):
        self.tried.append(backend)
        if error := self.failures.get(backend):
            raise error
        return backend


def test_the_first_that_works_has_it_and_the_rest_is_not_tried():
    opener = Opener()
    assert open_first("swap", ALL, opener) == "tensorrt"
    assert opener.tried == ["tensorrt"]


def test_each_that_fails_is_told_with_its_reason_and_the_next_is_tried():
    opener, skipped = Opener(tensorrt=NotOnDeviceError("no plan"), cuda=RuntimeError("x")), []
    assert open_first("swap", ALL, opener, passed=skipped.append) == "cpu"
    assert opener.tried == list(ALL)
    assert skipped == [
        SkippedBackend("swap", "tensorrt", "NotOnDeviceError: no plan"),
        SkippedBackend("swap", "cuda", "RuntimeError; see the log"),
    ]


def test_where_none_works_all_reasons_are_given():
    opener = Opener(tensorrt=NotOnDeviceError("no plan"), cuda=NotOnDeviceError("no driver"))
    with pytest.raises(NotOnDeviceError, match=r"tensorrt: .*no plan; cuda: .*no driver$"):
        open_first("swap", GPU, opener)


def test_what_would_help_is_said_where_the_cpu_was_named_but_not_allowed():
    opener = Opener(cuda=NotOnDeviceError("no driver"))
    with pytest.raises(NotOnDeviceError, match="EMBER_ALLOW_DEGRADED=true would"):
        open_first("swap", ("cuda",), opener, left_out=True)


def test_a_gpu_that_breaks_on_the_way_ends_the_search():
    opener = Opener(tensorrt=RuntimeError("CUDA failure 700: an illegal memory access"))
    with pytest.raises(DeviceLostError, match="CUDA failure 700"):
        open_first("swap", ALL, opener)
    assert opener.tried == ["tensorrt"]


def test_what_fails_on_the_cpu_is_no_matter_of_devices():
    with pytest.raises(OSError, match="broken"):
        open_first("swap", ("cpu",), Opener(cpu=OSError("broken")))
