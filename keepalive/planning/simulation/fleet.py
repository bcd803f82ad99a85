"""The replicas of a service and the GPUs that they hold: starting, ready, draining, failing."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


@dataclass(frozen=True, slots=True)
class Nodes:
    """The GPUs of the cluster, one for each replica.

    Attributes:
        held: GPUs that are always there, and paid for.
        most: the most GPUs there can be.
        provision_s: seconds until another one is there.
        keep_s: how long an idle one beyond `held` is kept.
    """

    held: int
    most: int
    provision_s: float
    keep_s: float = 600.0


class GpuPool:
    """Who has a GPU, and how many there are.

    Without `nodes`, GPUs are there at once and paid for while in use.
    """

    def __init__(self, nodes: Nodes | None) -> None:
        self._nodes = nodes
        self._idle: deque[float] = deque([0.0] * nodes.held if nodes else [])
        self._used = 0

    def take(self, now: float) -> float | None:
        """When a GPU is there for one more replica; None when there can be none."""
        nodes = self._nodes
        if nodes is None or self._idle:
            if nodes is not None:
                self._idle.pop()
            self._used += 1
            return now
        if self._used >= nodes.most:
            return None
        self._used += 1
        return now + nodes.provision_s

    def give(self, now: float) -> None:
        """One is free again."""
        self._used -= 1
        if self._nodes is not None:
            self._idle.append(now)

    def paid(self, now: float) -> int:
        """How many are paid for, after those that were idle for too long have gone."""
        nodes = self._nodes
        if nodes is None:
            return self._used
        while (
            self._idle
            and self._idle[0] <= now - nodes.keep_s
            and self._used + len(self._idle) > nodes.held
        ):
            self._idle.popleft()
        return self._used + len(self._idle)


class Fleet:
    """The replicas.

    Args:
        free: the heap of the replicas that take requests: (seconds when free, number).
        cold_starts: seconds until ready, of which each start is one by chance.
        nodes: the GPUs.
        drain_s: how long a replica that goes still holds its GPU after its last batch.
        chance: a source of chance.

    Attributes:
        starts: replicas that were started after the first ones.
        wanted: how many there are to be.
    """

    def __init__(
        self,
        free: list[tuple[float, int]],
        cold_starts: Sequence[float],
        nodes: Nodes | None,
        drain_s: float,
        chance: np.random.Generator,
    ) -> None:
        self._free = free
        self._cold = list(cold_starts)
        self._gpus = GpuPool(nodes)
        self._drain_s = drain_s
        self._chance = chance
        self._coming: list[tuple[float, int]] = []  # (ready at, number)
        self._pending = 0  # without a GPU
        self._draining: list[float] = []
        self._number = 0
        self._latest = -math.inf
        self.starts = 0
        self.wanted = 0

    @property
    def ready(self) -> int:
        """How many take requests."""
        return len(self._free)

    @property
    def starting(self) -> int:
        """How many are on their way, with or without a GPU."""
        return len(self._coming) + self._pending

    @property
    def started(self) -> float:
        """When the last one became ready; infinite while any is on its way."""
        return math.inf if self.starting else self._latest

    def begin(self, replicas: int) -> None:
        """Have that many ready at the start."""
        self.wanted = replicas
        for _ in range(replicas):
            self._gpus.take(0.0)
            self._number += 1
            heappush(self._free, (0.0, self._number))

    def arrive(self, until: float) -> bool:
        """Let those take requests that are ready before that time; whether there are any."""
        some = False
        while self._coming and self._coming[0][0] < until:
            self._latest, _ = self._coming[0]
            heappush(self._free, heappop(self._coming))
            some = True
        return some

    def set(self, now: float, replicas: int) -> bool:
        """Have that many; what is not ready goes first, then the newest. Whether it changed."""
        changed = replicas != self.wanted
        for _ in range(self.wanted, replicas):
            self._start(now)
        if replicas < self.wanted:
            self._remove(now, self.wanted - replicas)
        self.wanted = replicas
        return changed

    def paid(self, now: float) -> int:
        """GPUs that are paid for in this second; also hands freed ones to those that wait."""
        while self._draining and self._draining[0] <= now:
            self._gpus.give(heappop(self._draining))
        while self._pending:
            at = self._gpus.take(now)
            if at is None:
                break
            self._pending -= 1
            self._come(at)
        return self._gpus.paid(now)

    def fail(self, now: float) -> None:
        """One ready replica by chance dies and starts again on its GPU."""
        at = int(self._chance.integers(len(self._free)))
        _, number = self._free.pop(at)
        heapify(self._free)
        self.starts += 1
        heappush(self._coming, (now + self._cold_start(), number))

    def _start(self, now: float) -> None:
        self.starts += 1
        at = self._gpus.take(now)
        if at is None:
            self._pending += 1
        else:
            self._come(at)

    def _come(self, at: float) -> None:
        self._number += 1
        heappush(self._coming, (at + self._cold_start(), self._number))

    def _cold_start(self) -> float:
        return self._cold[int(self._chance.integers(len(self._cold)))]

    def _remove(self, now: float, count: int) -> None:
        pending = min(count, self._pending)
        self._pending -= pending
        count -= pending
        for at, number in sorted(self._coming, key=lambda each: -each[1])[:count]:
            self._coming.remove((at, number))
            self._gpus.give(now)
            count -= 1
        heapify(self._coming)
        for at, number in sorted(self._free, key=lambda each: -each[1])[:count]:
            self._free.remove((at, number))
            heappush(self._draining, max(at, now) + self._drain_s)
        heapify(self._free)
