"""Waiting until a GPU has room, as the replica before may not have let go of it yet."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from warmup.plans import nvml

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warmup.models.manifest import Model
    from warmup.plans.nvml import GpuMemory

log = logging.getLogger("ember.room")

_CONTEXT = 600 * 1000**2  # what CUDA and its libraries take by themselves
_FACTOR = 2  # weights, and as much again for what is between the layers
_EVERY_S = 0.5


def needed(models: Sequence[Model]) -> int:
    """About how many bytes of GPU memory some models take."""
    return _CONTEXT + _FACTOR * sum(model.file.size for model in models)


def wait(
    need: int,
    patience_s: float,
    *,
    look: Callable[[], GpuMemory | None] = nvml.memory,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Wait until the GPU has room; it blocks.

    Args:
        need: bytes.
        patience_s: for how long at most; 0 for not at all.
        look: the memory of the GPU; None when nobody knows it.
        clock: seconds, never going back.
        sleep: waits.

    Returns:
        Whether there is room, as far as that is known.
    """
    end = clock() + patience_s
    while (found := look()) is not None and found.free < need:
        if clock() >= end:
            facts = {"free": found.free, "needed": need, "waited_s": patience_s}
            log.warning("the GPU has little room; it is tried regardless", extra=facts)
            return False
        sleep(_EVERY_S)
    return True
