"""The image `gpu`, as far as it goes without a GPU."""

from __future__ import annotations

import json
import re

from keepalive.doctor.images import LABEL, RUNS
from tests.function.live import SOURCE, TARGET
from tests.image.podman import HARDENED, ROOT, SLOW

pytestmark = SLOW


def ask(podman, gpu, code):
    """What the interpreter inside prints."""
    words = ("--user=65532", *HARDENED, "--entrypoint=/usr/bin/python3.11", gpu, "-c", code)
    return podman("run", "--rm", *words).stdout


def test_the_runtime_of_tensorrt_loads_in_the_version_of_the_lock(podman, gpu):
    locked = re.search(
        r"^tensorrt-lean-cu13-libs==(\S+)", (ROOT / "locks/image-gpu.txt").read_text(), re.MULTILINE
    )
    code = "import tensorrt_lean_bindings as trt; print(trt.__version__, trt.Logger, trt.Runtime)"
    assert ask(podman, gpu, code).startswith(f"{locked[1]} <class")


def test_without_a_driver_the_bindings_to_cuda_say_so(podman, gpu):
    code = (
        "from cuda.bindings import driver\n"
        "try: driver.cuInit(0)\n"
        "except Exception as error: print(error)"
    )
    assert "Ensure the NVIDIA display driver is installed" in ask(podman, gpu, code)


def test_neither_cublas_nor_cudnn_is_in_it(podman, gpu):
    code = "import pathlib; print(*pathlib.Path('/').rglob('lib*.so*'))"
    found = ask(podman, gpu, code)
    assert "libnvinfer_lean.so" in found
    assert not re.search(r"libcublas|libcudnn|libcudart", found)


def test_without_a_gpu_it_ends_and_says_what_is_missing(podman, gpu):
    settings = ("-e", "EMBER_ALLOW_ANONYMOUS=true", "-e", "EMBER_WARMUP_RETRY_S=0")
    quick = ("-e", "EMBER_DRAIN_GRACE_S=0")
    done = podman("run", "--rm", "--user=65532", *HARDENED, *settings, *quick, gpu, fine=False)
    assert done.returncode == 69
    assert "no NVIDIA driver can be used" in done.stderr
    assert "Segmentation fault" not in done.stderr


def test_its_plans_are_those_that_its_runtime_can_run(podman, gpu):
    words = ("--user=65532", *HARDENED, gpu, "config", "--json")
    found = {
        each: facts["value"]
        for each, facts in json.loads(podman("run", "--rm", *words).stdout).items()
    }
    assert found["EMBER_BACKENDS"] == ["tensorrt"]
    assert found["EMBER_PLAN_FLAGS"] == ["version-compatible"]


def test_a_backend_that_is_not_in_it_ends_it_at_once(podman, gpu):
    settings = ("-e", "EMBER_ALLOW_ANONYMOUS=true", "-e", "EMBER_BACKENDS=cuda,cpu")
    done = podman("run", "--rm", "--user=65532", *HARDENED, *settings, gpu, fine=False)
    assert done.returncode == 78
    assert "EMBER_BACKENDS names cuda" in done.stderr
    assert "take an image with it, gpu-ort or gpu-both" in done.stderr


def test_its_label_says_what_it_can_run(podman, gpu):
    assert podman.inspect(gpu)["Config"]["Labels"][LABEL] == ",".join(RUNS["gpu"])


def test_no_plan_is_built_where_nothing_builds(podman, gpu):
    done = podman("run", "--rm", "--user=65532", *HARDENED, gpu, "engines", "build", fine=False)
    assert done.returncode == 69
    assert "tensorrt is not installed" in done.stderr


def test_asked_to_it_serves_from_the_cpu(podman, gpu):
    with podman.serving(gpu, EMBER_BACKENDS="cpu") as replica:
        assert replica.form("/v1/swap", SOURCE, TARGET).status == 200


def test_it_keeps_to_its_budget(weigh, gpu):
    assert weigh("gpu") == 0
