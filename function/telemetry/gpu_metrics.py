"""The metrics of GPUs, read when somebody asks for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warmup.failures import UnavailableError
from warmup.plans.nvml import visible

if TYPE_CHECKING:
    from prometheus_client import Gauge

    from warmup.plans.nvml import Gpu


@dataclass(slots=True)
class GpuMetrics:
    """The gauges, and what each GPU held of this process when it became ready.

    Attributes:
        on: whether GPUs are asked at all.
        info, memory, utilisation, celsius, fragmentation: the gauges.
    """

    on: bool
    info: Gauge
    memory: Gauge
    utilisation: Gauge
    celsius: Gauge
    fragmentation: Gauge
    _held: dict[str, float] = field(default_factory=dict)

    def note(self) -> None:
        """Note what this process holds now, as it is ready."""
        for gpu in self._seen():
            self._held.setdefault(gpu.uuid, gpu.vitals().mine)

    def read(self) -> None:
        """Set the gauges."""
        for gpu in self._seen():
            found = gpu.vitals()
            self.info.labels(gpu.uuid, gpu.name, gpu.sm, gpu.driver, str(gpu.mig).lower()).set(1)
            for kind in ("used", "total", "mine"):
                self.memory.labels(gpu.uuid, kind).set(getattr(found, kind))
            self.utilisation.labels(gpu.uuid).set(found.utilisation)
            self.celsius.labels(gpu.uuid).set(found.celsius)
            before = self._held.get(gpu.uuid, math.nan)
            self.fragmentation.labels(gpu.uuid).set(fragmentation(before, found.mine))

    def _seen(self) -> tuple[Gpu, ...]:
        try:
            return visible() if self.on else ()
        except UnavailableError:
            return ()


def fragmentation(before: float, now: float) -> float:
    """The part of what is held now that was not held before; NaN where either is not known."""
    if not (before >= 0 and now > 0):  # false for NaN
        return math.nan
    return max(0.0, 1 - before / now)
