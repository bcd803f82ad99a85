"""The simulation: second after second, requests, replicas and the rule between them.

A second that is like others is not always simulated again. When nothing changes, no queue is left
from before and the replicas are at most at 90 % of what they can do, a second depends only on how
many replicas there are and how many requests come; after enough such seconds were simulated, one of
them by chance stands for the next. `exact` turns that off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from keepalive.planning.simulation.fleet import Fleet
from keepalive.planning.simulation.outcome import WINDOW_S, Series, SimulationOutcome
from keepalive.planning.simulation.serving import BINS, NOTHING, RequestQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from keepalive.planning.simulation.fleet import Nodes
    from keepalive.planning.simulation.scaling import Scaling
    from keepalive.planning.simulation.service import BatchTimes
    from keepalive.planning.simulation.serving import Second

_FEWEST = 24
_REQUESTS = 10_000
"""Seconds, and requests in them, that have to be simulated before they stand for others."""
_BUSY = 0.4
"""With a smaller part of the replicas idle, seconds resemble the one before, so more are needed."""
_LIKE = math.log(1.02)
"""Rates within 2 % are alike."""
_CALM = 0.9
_SHORT_S = 0.5
"""Only when batches are shorter is a second independent of the one before."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is simulated.

    Attributes:
        rates: (seconds,) requests per second that come on average.
        service: how long batches take.
        cold_starts: seconds until a replica is ready, of which each start is one by chance.
        scaling: makes the rule; called at the start of the simulation.
        floors: (seconds,) the least replicas in each second; None for no floor.
        nodes: the GPUs; None for as many as are asked for, at once.
        deadline_s: how long a request may wait before it is given up.
        drain_s: how long a replica that goes holds its GPU after its last batch.
        failures_per_hour: how often each ready replica dies.
        gpu_price: of a GPU for an hour.
        seed: of all chance.
        exact: whether every second is simulated.
    """

    rates: NDArray[np.float64]
    service: BatchTimes
    cold_starts: tuple[float, ...]
    scaling: Callable[[], Scaling]
    floors: NDArray[np.int64] | None = None
    nodes: Nodes | None = None
    deadline_s: float = 45.0
    drain_s: float = 10.0
    failures_per_hour: float = 0.0
    gpu_price: float = 0.0
    seed: int = 0
    exact: bool = False


@dataclass(frozen=True, slots=True)
class _Sample:
    """One simulated second and the state that it left, with times from its end."""

    second: Second
    free: list[float]
    waiting: list[float]
    inside: int
    leaving: list[float]


@dataclass(slots=True)
class SecondsCache:
    """Seconds that were simulated, by replicas and rate; one may serve several runs.

    Attributes:
        samples: for each (service, replicas, rate) the seconds found.
    """

    samples: dict[tuple[BatchTimes, int, int], list[_Sample]] = field(default_factory=dict)


def simulate(scenario: Scenario, memo: SecondsCache | None = None) -> SimulationOutcome:
    """Simulate all seconds; `memo` has those of other runs, and gets those of this one."""
    return _Run(scenario, memo or SecondsCache()).run()


class _Run:
    def __init__(self, scenario: Scenario, memo: SecondsCache) -> None:
        self._scenario = scenario
        self._memo = memo
        sources = np.random.SeedSequence(scenario.seed).spawn(4)
        arrivals, noise, fleet, failures = (np.random.default_rng(each) for each in sources)
        self._arrivals = arrivals
        self._failures = failures
        self._line = RequestQueue(scenario.service, scenario.deadline_s, noise)
        self._fleet = Fleet(
            self._line.free, scenario.cold_starts, scenario.nodes, scenario.drain_s, fleet
        )
        self._capacity = scenario.service.most_per_second
        self._short = scenario.service.times[-1] <= _SHORT_S and not scenario.exact

    def run(self) -> SimulationOutcome:
        scenario, fleet = self._scenario, self._fleet
        seconds = len(scenario.rates)
        floors = scenario.floors if scenario.floors is not None else np.zeros(seconds, np.int64)
        scaling = scenario.scaling()
        fleet.begin(max(scaling.begin(), int(floors[0])))
        series = Series.empty(seconds)
        counts = np.zeros((math.ceil(seconds / WINDOW_S), BINS), np.int64)
        failing = self._next_failure()
        changed = True
        for start, (rate, floor) in enumerate(
            zip(scenario.rates.tolist(), floors.tolist(), strict=True)
        ):
            changed |= fleet.arrive(start + 1)
            seen = self._second(start, rate, scaling.limit(fleet.ready), changed=changed)
            row = counts[start // WINDOW_S]
            row[seen.bins] += seen.counts
            ready = fleet.ready
            series.note(
                start,
                seen,
                ready=ready,
                starting=fleet.starting,
                wanted=fleet.wanted,
                paid=fleet.paid(start + 1),
            )
            wanted = scaling.decide(start + 1, seen, ready, fleet.wanted, int(floor))
            changed = fleet.set(start + 1, wanted)
            failing -= ready
            if failing <= 0 and ready:
                if fleet.ready:
                    fleet.fail(start + 1)
                failing, changed = self._next_failure(), True
        return SimulationOutcome(
            scenario.rates, floors, series, counts, fleet.starts, scenario.gpu_price
        )

    def _next_failure(self) -> float:
        """How many seconds of ready replicas until one dies."""
        per_hour = self._scenario.failures_per_hour
        return self._failures.exponential(3600 / per_hour) if per_hour else math.inf

    def _second(self, start: int, rate: float, limit: int, *, changed: bool) -> Second:
        line, ready = self._line, self._fleet.ready
        calm = (
            self._short
            and not changed
            and 0 < rate <= _CALM * ready * self._capacity
            and len(line.waiting) <= ready * self._scenario.service.batch
        )
        if not calm:
            return self._simulated(start, rate, limit)
        key = (self._scenario.service, ready, int(math.log(rate) / _LIKE))
        samples = self._memo.samples.setdefault(key, [])
        idle = 1 - rate / (ready * self._capacity)
        enough = math.ceil(max(_FEWEST, _REQUESTS / rate) * max(1.0, _BUSY / idle))
        if len(samples) < enough:
            second = self._simulated(start, rate, limit)
            if not (second.refused or second.late):
                samples.append(self._sample(start + 1, second))
            return second
        sample = samples[int(self._arrivals.integers(len(samples)))]
        numbers = sorted(number for _, number in line.free)
        line.free[:] = [
            (start + 1 + at, number) for at, number in zip(sample.free, numbers, strict=True)
        ]
        line.waiting[:] = [start + 1 + at for at in sample.waiting]
        line.inside = sample.inside
        line.leaving = {start + 1: sample.leaving[:]}
        return sample.second

    def _simulated(self, start: int, rate: float, limit: int) -> Second:
        count = self._arrivals.poisson(rate)
        if not (count or self._line.inside):
            return NOTHING
        came = start + np.sort(self._arrivals.random(count))
        return self._line.second(start, came, limit, started=self._fleet.started)

    def _sample(self, end: int, second: Second) -> _Sample:
        line = self._line
        return _Sample(
            second,
            sorted(at - end for at, _ in line.free),
            [at - end for at in line.waiting],
            line.inside,
            list(line.leaving.get(end, (0.0, 0.0))),
        )
