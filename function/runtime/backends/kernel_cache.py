"""What TensorRT-RTX compiles when a plan is run, kept in a file of that plan and that GPU.

It compiles kernels for each new shape when that is first run, which takes seconds of CPU; with what
is kept the next process has them in a fraction of one.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from warmup.models.store import replace_file
from warmup.plans.tensorrt import listening

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("ember.tensorrt")

_refusals: list[str] = []


class KernelCache:
    """The compiled kernels of one plan.

    Args:
        path: the file that keeps them; None for none.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._cache: Any = None
        self._size = 0

    def use(self, config: Any, trt: Any) -> None:
        """Have a context, that will be made with this configuration, use them and add to them."""
        if self._cache is None:
            self._cache = config.create_runtime_cache()
            self._read(trt)
        config.set_runtime_cache(self._cache)

    def keep(self) -> None:
        """Write them, if more came.

        Only after a run that succeeded, as those of a GPU that was lost are of no use.
        """
        if self._cache is None or self._path is None:
            return
        try:
            content = bytes(self._cache.serialize())
            if len(content) != self._size:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(self._path, content)
                self._size = len(content)
        except Exception as error:  # the result is there, whatever becomes of the kernels
            facts = {"file": self._path.name, "reason": str(error)}
            log.warning("compiled kernels cannot be kept", extra=facts)

    def close(self) -> None:
        """Let go of them."""
        self._cache = None

    def _read(self, trt: Any) -> None:
        content = b""
        if self._path is not None:
            with suppress(OSError):
                content = self._path.read_bytes()
        if not content or self._path is None:
            return
        with listening(trt) as said:
            taken = self._cache.deserialize(content)
        if taken:
            self._size = len(content)
            return
        _refusals.append(self._path.name)
        facts = {"file": self._path.name, "reason": said.text}
        log.warning("kept kernels are refused, so all are compiled anew", extra=facts)


def refused() -> int:
    """How many files of kernels were refused in this process."""
    return len(_refusals)
