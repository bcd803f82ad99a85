"""NVIDIA's libraries for plans: TensorRT, its lean runtime, TensorRT-RTX; which of them is here.

Importing one needs no GPU. Using one without a driver ends the process, so a driver has to be
looked for first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from warmup.failures import UnavailableError

FULL, LEAN, RTX = "tensorrt", "tensorrt_lean", "tensorrt_rtx"
# The modules of one product have several names, by package index.
_MODULES = {
    FULL: ("tensorrt", "tensorrt_bindings"),
    LEAN: ("tensorrt_lean", "tensorrt_lean_bindings"),
    RTX: ("tensorrt_rtx", "tensorrt_rtx_bindings"),
}
_EXTRAS = {FULL: "tensorrt", LEAN: "tensorrt-lean", RTX: "rtx"}


@dataclass(frozen=True, slots=True)
class Library:
    """One of them.

    Attributes:
        name: `FULL`, `LEAN` or `RTX`.
        module: the Python module.
        version: e.g. "11.4.0.106".
    """

    name: str
    module: Any
    version: str

    @property
    def runtime(self) -> str:
        """Whose plans it runs, as a `PlanKey` has it: the lean runtime those of TensorRT."""
        return RTX if self.name == RTX else FULL


@cache
def library(name: str) -> Library:
    """One of them.

    Raises:
        UnavailableError: it is not installed.
    """
    for each in _MODULES[name]:
        try:
            module = import_module(each)
        except ImportError:
            continue
        return Library(name, module, str(module.__version__))
    raise UnavailableError(
        f"{name} is not installed: pip install 'ember-function[{_EXTRAS[name]}]'"
    )


def runner(flags: tuple[str, ...]) -> Library:
    """What runs plans here that were made with these flags.

    Version-compatible plans leave the lean runtime to be brought along; the others need the very
    TensorRT that they were built with. TensorRT-RTX counts where neither is installed.

    Raises:
        UnavailableError: nothing is installed that could.
    """
    first, *others = (LEAN, FULL, RTX) if "version-compatible" in flags else (FULL, RTX)
    try:
        return library(first)
    except UnavailableError as error:
        for name in others:
            try:
                return library(name)
            except UnavailableError:
                continue
        if "version-compatible" not in flags and _is_here(LEAN):
            raise UnavailableError(
                "the lean runtime of TensorRT runs version-compatible plans only: set"
                " EMBER_PLAN_FLAGS=version-compatible, here and where plans are built"
            ) from error
        raise


def _is_here(name: str) -> bool:
    try:
        library(name)
    except UnavailableError:
        return False
    return True
