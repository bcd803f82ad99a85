"""How much memory is free where a model runs, and when a larger batch may be tried again.

A batch size is given up only when a batch has failed for want of memory: what the warm-up has run,
the runtime's own arena has room for, however little the device has left. Free memory therefore
shows when to go back: not before there is clearly more of it than at the failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.runtime import memory
from function.runtime.engine import PROVIDERS
from warmup.plans import nvml
from warmup.plans.nvml import GpuMemory

if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE_S = 60.0
_MORE = 0.05  # of all memory: by how much more must be free than when it was too little


class Comeback:
    """Decides when the next larger size may be tried."""

    def __init__(self) -> None:
        self._short: GpuMemory | None = None
        self._since = 0.0

    def fell(self, now: float, found: GpuMemory | None) -> None:
        """Note what memory is like when it was too little for a batch; None if nobody knows."""
        self._short, self._since = found, now

    def asks(self, now: float) -> bool:
        """Whether it is worth while to look at memory."""
        return self._short is not None and now - self._since >= _PAUSE_S

    def allows(self, now: float, found: GpuMemory | None) -> bool:
        """Whether one size more may be tried, with this memory."""
        if self._short is None or found is None or not self.asks(now):
            return False
        self._since = now
        return found.free >= self._short.free + _MORE * found.total


def reader(provider: str) -> Callable[[], GpuMemory | None]:
    """What reads the memory of the device behind a provider; None where nobody knows it."""
    return _of_process if provider == PROVIDERS["cpu"] else nvml.memory


def _of_process() -> GpuMemory | None:
    limit = memory.limit()
    return None if limit is None else GpuMemory(max(0, limit - memory.held()), limit)
