"""The image `gpu`, as far as it goes without a GPU."""

from __future__ import annotations

import re

from tests.function.http.live import SOURCE, TARGET
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


def test_it_ends_at_once_and_names_the_backend_that_this_version_has_not(podman, gpu):
    done = podman("run", "--rm", "--user=65532", *HARDENED, gpu, fine=False)
    assert done.returncode == 78
    assert "EMBER_BACKENDS is 'tensorrt'; allowed: one or more of cuda, cpu" in done.stderr


def test_asked_to_it_serves_from_the_cpu(podman, gpu):
    with podman.serving(gpu, EMBER_BACKENDS="cpu") as replica:
        assert replica.form("/v1/swap", SOURCE, TARGET).status == 200


def test_it_keeps_to_its_budget(weigh, gpu):
    assert weigh("gpu") == 0
