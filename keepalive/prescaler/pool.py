"""What a pool of replicas shows of itself, in two layers that are measured by different programs.

The model layer is what replicas say of themselves; the node layer is what NVIDIA's DCGM says of the
GPUs below them. A fault of one is not mended in the other.
"""

from __future__ import annotations

from dataclasses import dataclass

FAILING = 0.01
"""The part of swaps from which on a pool counts as failing."""


@dataclass(frozen=True, slots=True)
class ModelLayer:
    """The replicas.

    Attributes:
        ready: how many take traffic.
        warming: how many are on the way, from started to warmed.
        in_flight: requests in all of them that wait or are worked on.
        queued: those of them that wait.
        slope: how many more are in flight each second, lately.
        p95_s: seconds within which 95 % of the swaps were done that were served; None when none
            were.
        served_s: seconds that they took, the mean.
        refused: swaps that were refused for want of room or time, each second.
        failed: part of the swaps that failed, 0 to 1.
        broken: replicas that have failed or are stuck, and so get no traffic.
        first_ratio: time of the first swap of a replica over its usual one, the worst of all.
        start_s: seconds from the start of a process to ready, the worst of all.
        degraded: models that run on something else than was wanted.
    """

    ready: int
    warming: int = 0
    in_flight: float = 0.0
    queued: float = 0.0
    slope: float = 0.0
    p95_s: float | None = None
    served_s: float | None = None
    refused: float = 0.0
    failed: float = 0.0
    broken: int = 0
    first_ratio: float | None = None
    start_s: float | None = None
    degraded: int = 0

    @property
    def failing(self) -> bool:
        """Whether what is in flight is no measure of what comes: who fails at once has nothing."""
        return self.failed > FAILING or self.broken > 0

    @property
    def turned_away(self) -> float:
        """Requests that would be in flight as well, had they not been refused (Little's law)."""
        return self.refused * (self.served_s or 0.0)


@dataclass(frozen=True, slots=True)
class NodeLayer:
    """The GPUs; what DCGM does not tell is None.

    Attributes:
        gpus: how many there are.
        busy: share of time that they computed, 0 to 1, the mean.
        memory: share of their memory that is taken, 0 to 1, the fullest.
        drivers: how many versions of the driver there are.
        nvlink: bytes a second between GPUs.
        faults: GPUs that have reported an error (XID).
    """

    gpus: int
    busy: float | None = None
    memory: float | None = None
    drivers: int | None = None
    nvlink: float | None = None
    faults: int = 0
