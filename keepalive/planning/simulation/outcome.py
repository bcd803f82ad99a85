"""What came of a simulation: latencies, refusals, GPU-hours, and how it went over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from keepalive.planning.simulation.serving import percentiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from keepalive.planning.simulation.serving import Second

WINDOW_S = 60
"""Latencies are counted by minute."""
WORST_OVER = 5
"""Over so many minutes the worst percentile is taken."""


@dataclass(frozen=True, slots=True)
class Series:
    """Figures of every second, (seconds,) each.

    Attributes:
        came: requests that came.
        lost: refused or given up.
        met_cold: requests that waited for a replica that started.
        ready: replicas that took requests.
        starting: replicas on their way.
        wanted: replicas there were to be.
        paid: GPUs that were paid for.
    """

    came: NDArray[np.int64]
    lost: NDArray[np.int64]
    met_cold: NDArray[np.int64]
    ready: NDArray[np.int64]
    starting: NDArray[np.int64]
    wanted: NDArray[np.int64]
    paid: NDArray[np.int64]

    @classmethod
    def empty(cls, seconds: int) -> Series:
        """To be filled."""
        return cls(*(np.zeros(seconds, np.int64) for _ in range(7)))

    def note(
        self, second: int, seen: Second, *, ready: int, starting: int, wanted: int, paid: int
    ) -> None:
        """Fill in one second."""
        self.came[second] = seen.came
        self.lost[second] = seen.refused + seen.late
        self.met_cold[second] = seen.met_cold
        self.ready[second] = ready
        self.starting[second] = starting
        self.wanted[second] = wanted
        self.paid[second] = paid


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """All of it.

    Attributes:
        rates: (seconds,) requests per second that came on average.
        floors: (seconds,) the least replicas.
        series: figures of every second.
        counts: (minutes, BINS) latencies of the requests begun in each minute.
        starts: replicas that were started.
        gpu_price: of a GPU for an hour.
    """

    rates: NDArray[np.float64]
    floors: NDArray[np.int64]
    series: Series
    counts: NDArray[np.int64]
    starts: int
    gpu_price: float

    def latency(self, part: float) -> float:
        """The percentile of all answered requests, seconds."""
        return float(percentiles(self.counts.sum(axis=0, keepdims=True), part)[0])

    def by_minute(self, part: float) -> NDArray[np.float64]:
        """(minutes,) the percentile of each minute, seconds."""
        return percentiles(self.counts, part)

    def worst(self, part: float) -> float:
        """The highest percentile of any five minutes in a row, seconds."""
        summed = np.cumsum(self.counts, axis=0)
        summed[WORST_OVER:] -= summed[:-WORST_OVER].copy()
        rows = summed[min(WORST_OVER, len(summed)) - 1 :]
        return float(percentiles(rows, part).max())

    @property
    def requests(self) -> int:
        """Requests that came."""
        return int(self.series.came.sum())

    @property
    def lost(self) -> int:
        """Requests that were refused or given up."""
        return int(self.series.lost.sum())

    @property
    def met_cold(self) -> int:
        """Requests that waited longer than a full batch takes, for a replica that started."""
        return int(self.series.met_cold.sum())

    @property
    def gpu_hours(self) -> float:
        """GPUs × hours that were paid for, those that start or drain included."""
        return float(self.series.paid.sum()) / 3600

    @property
    def replica_hours(self) -> float:
        """Replicas × hours that took requests."""
        return float(self.series.ready.sum()) / 3600

    @property
    def most(self) -> int:
        """The most GPUs at once."""
        return int(self.series.paid.max())

    @property
    def cost(self) -> float:
        """Of the GPUs."""
        return self.gpu_hours * self.gpu_price

    def plain(self) -> dict[str, Any]:
        """For JSON: the figures without the series."""
        return {
            "hours": round(len(self.rates) / 3600, 3),
            "requests": self.requests,
            "p50_s": round(self.latency(0.5), 4),
            "p95_s": round(self.latency(0.95), 4),
            "p99_s": round(self.latency(0.99), 4),
            "worst_p99_s": round(self.worst(0.99), 4),
            "lost": self.lost,
            "met_cold": self.met_cold,
            "starts": self.starts,
            "most_replicas": self.most,
            "replica_hours": round(self.replica_hours, 2),
            "gpu_hours": round(self.gpu_hours, 2),
            "cost": round(self.cost, 2),
        }
