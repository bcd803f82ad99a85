"""What a dependency brings and nothing here loads: tests, headers, symbols, second copies.

Each cut is proven by what the finished image does: it starts hardened and swaps photos, and its
commands run (tests/image). A pattern that meets nothing is an error, so that the list stays true
when a dependency changes.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from image import elf

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cut:
    """Files of one dependency that stay out.

    Attributes:
        distribution: its name, as its `.dist-info` folder spells it.
        patterns: globs below the tree.
        why: what makes them superfluous.
    """

    distribution: str
    patterns: tuple[str, ...]
    why: str


_ORT_SECOND = (
    ("onnxruntime/capi/libonnxruntime.so.*",),
    "the whole runtime a second time, for programs in C; Python's module has its own",
)
_ORT_TOOLS = (
    tuple(
        f"onnxruntime/{name}"
        for name in ("backend", "datasets", "quantization", "tools", "transformers")
    ),
    "tools to make models with",
)

CUTS = (
    Cut("onnxruntime", *_ORT_SECOND),
    Cut("onnxruntime", *_ORT_TOOLS),
    Cut("onnxruntime_gpu", *_ORT_SECOND),
    Cut("onnxruntime_gpu", *_ORT_TOOLS),
    Cut(
        "onnxruntime_gpu",
        ("onnxruntime/capi/libonnxruntime_providers_tensorrt.so",),
        "needs a full TensorRT 10, which no image has",
    ),
    Cut("numpy", ("numpy/_core/*_tests.*.so", "numpy/**/*.a"), "tests, and libraries to link"),
    Cut("numpy", ("numpy/f2py", "numpy/distutils"), "building of extension modules"),
    Cut(
        "cuda_bindings",
        tuple(f"cuda/bindings/**/*{name}.*.so" for name in ("cufile", "nvfatbin", "nvml")),
        "bindings to libraries that are not there",
    ),
    Cut(
        "nvidia_cudnn_cu13",
        tuple(
            f"nvidia/cudnn/lib/libcudnn_{name}.so*"
            for name in ("adv", "engines_runtime_compiled", "engines_tensor_ir", "ext")
        ),
        "attention and recurrent nets, and kernels that are compiled at run time",
    ),
    Cut("nvidia_cublas", ("nvidia/cu13/lib/libnvblas.so*",), "BLAS of the CPU, in disguise"),
    Cut("multidict", ("multidict/_testcapi.*",), "tests"),
    Cut(
        "opentelemetry_semantic_conventions",
        tuple(
            f"opentelemetry/semconv/_incubating/{name}/[!_o]*" for name in ("attributes", "metrics")
        ),
        "names of what other software tells of itself",
    ),
    Cut(
        "googleapis_common_protos",
        tuple(f"google/{name}" for name in ("api", "logging", "longrunning", "type")),
        "messages of other services",
    ),
    Cut("google_cloud_storage", ("google/cloud/_storage_v2",), "needs gRPC, which is not there"),
)
"""The distributions that are left out whole are those that `make lock` does not emit."""

UNUSED = {
    "onnxruntime/capi/libonnxruntime_providers_cuda.so": "libcurand.so.10",
}
"""Libraries that are named by a module and of which it uses nothing; they are not installed."""

EVERYWHERE = (
    "bin",
    "**/tests",
    "**/__pycache__",
    *(f"**/*.{suffix}" for suffix in ("c", "h", "hpp", "hash", "pxd", "pxi", "pyi", "pyx", "rlib")),
)
"""Scripts whose first line names another Python, tests, and what compilers and editors read."""

RECORDS = ("*.dist-info/RECORD", "*.dist-info/INSTALLER", "*.dist-info/REQUESTED")
"""They tell what was there before this module, and by what it was installed."""


def trim(tree: Path) -> None:
    """Remove from a tree of installed distributions what is not needed.

    Args:
        tree: what `pip install --target` has filled.

    Raises:
        LookupError: a cut is not true any more.
    """
    for cut in CUTS:
        if any(tree.glob(f"{cut.distribution}-*.dist-info")):
            for pattern in cut.patterns:
                if not _remove(tree, pattern):
                    raise LookupError(f"{cut.distribution} has no {pattern}: mend image/trim.py")
    for pattern in (*EVERYWHERE, *RECORDS):
        _remove(tree, pattern)
    for module, library in UNUSED.items():
        if (tree / module).exists():
            elf.forget(tree / module, library)
    for path in tree.rglob("*.so*"):
        if path.is_file() and not path.is_symlink():
            elf.strip(path)


def _remove(tree: Path, pattern: str) -> int:
    """Remove what a pattern meets; how many files and folders that were."""
    met = list(tree.glob(pattern))
    for path in met:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)  # it may have gone with another folder
        else:
            path.unlink(missing_ok=True)
    return len(met)
