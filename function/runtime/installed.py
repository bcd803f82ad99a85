"""Whether what runs models is installed: ONNX Runtime, only once, and what each backend needs.

ONNX Runtime comes as several distributions, for CPUs and for GPUs, that put their files into one
folder. With two of them installed the files are a mixture: as a rule those for CPUs win, and CUDA
is gone.
"""

from __future__ import annotations

from contextlib import redirect_stdout
from functools import cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from warmup.extras import bring
from warmup.failures import UnavailableError
from warmup.plans import tensorrt
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

_one_by_one = Lock()
_FILE = "onnxruntime/__init__.py,"


def check() -> None:
    """See that models can be run here at all; nothing is imported.

    Raises:
        UnavailableError: there is no ONNX Runtime, or more than one; the text says what to do.
    """
    found = find_spec("onnxruntime")
    if found is None or found.origin is None:
        raise UnavailableError(
            f"there is no ONNX Runtime, which runs models. For CPUs: {bring('cpu')}."
            " For NVIDIA GPUs, the same with gpu. It is one of the two."
        )
    folder = Path(found.origin).parents[1]
    names = distributions(folder)
    if len(names) > 1:
        raise UnavailableError(
            f"ONNX Runtime is installed {len(names)} times in {folder}, one over the other:"
            f" {', '.join(names)}. Remove all of them (pip uninstall --yes {' '.join(names)}),"
            f" then install one again, cpu or gpu: {bring('gpu')}."
        )


def check_backends(backends: Sequence[str]) -> None:
    """See that all of `EMBER_BACKENDS` is here, so that none is waited for that can never be.

    Whether a backend then finds a GPU is seen when a model is opened on it. Nothing is imported.

    Raises:
        SettingsError: with what is named and not here, and what has it.
    """
    problems = []
    if "cuda" in backends and not _with_cuda():
        problems.append(
            "EMBER_BACKENDS names cuda, and the ONNX Runtime that is here is not the one for GPUs."
            f" Name others, or take an image with it, gpu-ort or gpu-both, or {bring('gpu')}."
        )
    if "tensorrt" in backends and not any(map(find_spec, tensorrt.modules())):
        problems.append(
            "EMBER_BACKENDS names tensorrt, and nothing that runs its plans is here. Name others,"
            f" or take an image with it, gpu or gpu-both, or {bring('tensorrt-lean')}."
        )
    if problems:
        raise SettingsError(problems)


def _with_cuda() -> bool:
    found = find_spec("onnxruntime")
    folder = Path(found.origin).parent if found and found.origin else Path()
    return any(folder.glob("capi/*onnxruntime_providers_cuda.*"))


def distributions(folder: Path) -> list[str]:
    """The names of all distributions in a folder that have ONNX Runtime's files.

    Those in an image have no list of their files any more; there it is one.
    """
    records = sorted(folder.glob("onnxruntime*.dist-info/RECORD"))
    return [
        record.parent.name.partition("-")[0].replace("_", "-")
        for record in records
        if _FILE in record.read_text("utf-8")
    ]


def preload() -> None:
    """Load CUDA and cuDNN from where the extra `gpu` has put them, which the loader does not know.

    What is found nowhere is named by the session that then has no GPU.
    """
    # Models are opened by several threads, and standard output is theirs together.
    with _one_by_one:
        _preload()


@cache
def _preload() -> None:
    import onnxruntime

    with redirect_stdout(StringIO()):  # it prints what it does not find
        onnxruntime.preload_dlls()
