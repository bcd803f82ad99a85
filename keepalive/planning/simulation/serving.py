"""The requests of one second on the replicas: one queue, batches of what waits.

The replica that is free first takes what waits, up to the largest batch; one that is idle starts at
once with one request. Requests beyond the limit of the queue are refused, and those that waited
past their deadline are dropped when their turn comes. This is what the activator with its queue and
Ember's batcher do together; without the activator in the path it assumes a balancer that knows who
is free.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from heapq import heapreplace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from keepalive.planning.simulation.service import BatchTimes

BINS = 1400
_FIRST_S = 1e-3
_STEP = math.log(1.01)
_NOISES = 4096


def bins(seconds: NDArray[np.float64]) -> NDArray[np.intp]:
    """In which bin each latency falls: from a millisecond to a thousand seconds, 1 % apart."""
    logs = np.log(np.maximum(seconds, _FIRST_S) / _FIRST_S) / _STEP
    return np.minimum(logs, BINS - 1).astype(np.intp)


def percentiles(counts: NDArray[np.int64], part: float) -> NDArray[np.float64]:
    """(n,) the latency below which that part of each row's requests is; seconds, 0 without any.

    Args:
        counts: (n, BINS) requests in each bin.
        part: e.g. 0.99.
    """
    totals = np.cumsum(counts, axis=1)
    at = (totals < part * totals[:, -1:]).sum(axis=1)
    return np.where(totals[:, -1] > 0, _FIRST_S * np.exp((at + 0.5) * _STEP), 0.0)


@dataclass(frozen=True, slots=True)
class Second:
    """What happened in one second.

    Attributes:
        came: requests that came.
        refused: those that found the queue full.
        late: those that waited past their deadline.
        met_cold: those that waited longer than a full batch takes, and for a replica that started.
        concurrency: requests in the queue or at work, on average.
        busy: seconds of work that were begun, of all replicas.
        bins: (n,) bins of the latencies of the requests begun, each once.
        counts: (n,) how many are in each.
    """

    came: int
    refused: int
    late: int
    met_cold: int
    concurrency: float
    busy: float
    bins: NDArray[np.intp]
    counts: NDArray[np.int64]


NOTHING = Second(0, 0, 0, 0, 0.0, 0.0, np.zeros(0, np.intp), np.zeros(0, np.int64))
"""A second in which nothing happens."""


class RequestQueue:
    """The queue and the replicas that take from it.

    Attributes:
        free: (seconds at which it is free, number) of each ready replica, as a heap.
        waiting: when each request that has not begun came, by time.
        inside: requests that came and have not been answered.
    """

    def __init__(self, service: BatchTimes, deadline_s: float, noise: np.random.Generator) -> None:
        self._times = [0.0, *service.times]
        self._batch = service.batch
        self._deadline = deadline_s
        self._noises: list[float] = np.exp(noise.normal(0, service.spread, _NOISES)).tolist()
        self._noise = 0
        self.free: list[tuple[float, int]] = []
        self.waiting: list[float] = []
        self.inside = 0
        self.leaving: dict[int, list[float]] = {}
        """By second: how many are answered in it, and how much of it they are no more inside."""

    def second(
        self, start: int, came: NDArray[np.float64], limit: int, *, started: float
    ) -> Second:
        """Let one second pass.

        Args:
            start: of the second.
            came: (n,) when its requests come, by time.
            limit: how many may wait.
            started: when the last replica became ready; infinite while one is being started.
        """
        waiting = self.waiting
        waiting += came.tolist()
        arrived = np.array(waiting)
        began, ended, sizes, refused = self._serve(start + 1, limit)
        head = int(sizes.sum())
        refused += max(0, len(waiting) - head - limit)
        del waiting[head + limit :]
        begun = np.array(waiting[:head]) if refused else arrived[:head]
        del waiting[:head]
        starts, ends = np.repeat(began, sizes), np.repeat(ended, sizes)
        fine = ends > 0
        waits = starts - begun
        latencies = ends - begun
        late = head - int(fine.sum())
        cold = int(((waits > self._times[-1]) & (begun <= started)).sum())
        if late:
            latencies = latencies[fine]
        found, counts = np.unique(bins(latencies), return_counts=True)
        done = ended > 0
        self._leave(start, ended[done], sizes[done])
        there = self.inside + float((start + 1 - came).sum())
        gone, early = self.leaving.pop(start, (0, 0.0))
        self.inside += len(came) - int(gone) - refused - late
        busy = float((ended - began)[done].sum())
        concurrency = max(0.0, there - early - refused)
        return Second(
            len(came), refused, late, cold, concurrency, busy, found, counts.astype(np.int64)
        )

    def _serve(
        self, until: int, limit: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], int]:
        """Begin all batches that can begin before that time.

        Returns:
            When each began and ended (0 for one request that was too late), its size, and how many
            requests were refused.
        """
        waiting, free, times = self.waiting, self.free, self._times
        noises, noise, most, patience = self._noises, self._noise, self._batch, self._deadline
        began: list[float] = []
        ended: list[float] = []
        sizes: list[int] = []
        refused = head = 0
        count = len(waiting)
        while head < count and free:
            start, who = free[0]
            first = waiting[head]
            if first >= start:  # an idle replica, which takes what comes
                start, size = first, 1
            else:
                if start >= until:
                    break
                if count - head > limit:
                    seen = bisect_right(waiting, start, head, count)
                    if seen - head > limit:
                        refused += seen - head - limit
                        del waiting[head + limit : seen]
                        count = len(waiting)
                if start - first > patience:
                    began.append(start)
                    ended.append(0.0)
                    sizes.append(1)
                    head += 1
                    continue
                size = bisect_right(waiting, start, head + 1, min(head + most, count)) - head
            noise = (noise + 1) % _NOISES
            end = start + times[size] * noises[noise]
            heapreplace(free, (end, who))
            began.append(start)
            ended.append(end)
            sizes.append(size)
            head += size
        self._noise = noise
        return np.array(began), np.array(ended), np.array(sizes, np.int64), refused

    def _leave(self, start: int, ended: NDArray[np.float64], sizes: NDArray[np.int64]) -> None:
        """Note in which second each batch is answered."""
        seconds = ended.astype(np.int64) - start
        answered = np.bincount(seconds, sizes)
        early = np.bincount(seconds, sizes * (start + seconds + 1 - ended))
        for second in np.flatnonzero(answered).tolist():
            entry = self.leaving.setdefault(start + second, [0.0, 0.0])
            entry[0] += float(answered[second])
            entry[1] += float(early[second])
