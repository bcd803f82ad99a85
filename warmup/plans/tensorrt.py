"""NVIDIA's libraries for plans: TensorRT, its lean runtime, TensorRT-RTX; which of them is here.

Importing one needs no GPU. Using one without a driver ends the process, so a driver has to be
looked for first.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warmup.extras import bring
from warmup.failures import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warmup.plans.plan_key import PlanKey

log = logging.getLogger("ember.tensorrt")

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


def modules() -> list[str]:
    """The names of all modules that run plans, to look for without importing one."""
    return [each for names in _MODULES.values() for each in names]


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
    raise UnavailableError(f"{name} is not installed: {bring(_EXTRAS[name])}")


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


def runner_of(key: PlanKey) -> Library:
    """What runs the plan of a key here.

    Raises:
        UnavailableError: nothing is installed that could.
    """
    return library(RTX) if key.runtime == RTX else runner(key.flags)


def lean_runtime() -> Path:
    """The library file that the full TensorRT needs to run version-compatible plans.

    Raises:
        UnavailableError: it is not installed.
    """
    for package in ("tensorrt_lean_libs", "tensorrt_libs"):
        spec = find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            if found := sorted(Path(folder).glob("libnvinfer_lean.so*")):
                return found[0]
    raise UnavailableError(
        "the full TensorRT runs version-compatible plans by the lean runtime, which is not here:"
        f" {bring('tensorrt-lean')}"
    )


def _is_here(name: str) -> bool:
    try:
        library(name)
    except UnavailableError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Said:
    """What a library says goes wrong."""

    errors: deque[str] = field(default_factory=lambda: deque(maxlen=50))

    @property
    def text(self) -> str:
        """All of it, each once."""
        return "; ".join(dict.fromkeys(self.errors)) or "it does not say why"


class _Listeners:
    """Who wants to hear what one library says.

    A library may say it in any thread: that of the call, whose listener alone gets it then, or one
    of its own, and then all listeners do.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_thread: dict[int, list[Said]] = {}

    def hear(self, message: str) -> None:
        with self._lock:
            own = self._of_thread.get(threading.get_ident())
            every = (each for found in self._of_thread.values() for each in found)
            for each in own or every:
                each.errors.append(message)

    @contextmanager
    def listen(self) -> Iterator[Said]:
        said, thread = Said(), threading.get_ident()
        with self._lock:
            self._of_thread.setdefault(thread, []).append(said)
        try:
            yield said
        finally:
            with self._lock:
                self._of_thread[thread].pop()
                if not self._of_thread[thread]:
                    del self._of_thread[thread]


_loggers: dict[int, tuple[Any, _Listeners]] = {}
_making = threading.Lock()


def logger(trt: Any) -> Any:
    """The logger of a library: one, which lives as long as the process.

    A library keeps the first that it is given, and says things of the whole process to that. One
    that Python has freed by then ends the process.
    """
    return _logger_of(trt)[0]


@contextmanager
def listening(trt: Any) -> Iterator[Said]:
    """What a library says goes wrong while the body runs."""
    with _logger_of(trt)[1].listen() as said:
        yield said


def _logger_of(trt: Any) -> tuple[Any, _Listeners]:
    with _making:
        if id(trt) not in _loggers:
            listeners = _Listeners()
            _loggers[id(trt)] = _logger(trt, listeners), listeners
        return _loggers[id(trt)]


def _logger(trt: Any, listeners: _Listeners) -> Any:
    severity = trt.ILogger.Severity
    wrong = {severity.INTERNAL_ERROR, severity.ERROR}

    class Logger(trt.ILogger):  # type: ignore[misc]
        module = trt  # so that no other module can get its `id`

        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, message: str) -> None:
            if severity in wrong:
                listeners.hear(message)
                log.error("TensorRT", extra={"said": message})
            elif severity == trt.ILogger.Severity.WARNING:
                log.info("TensorRT", extra={"said": message})

    return Logger()
