"""Who decides how many replicas there are: Knative's autoscaler, an HPA, or nobody."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from keepalive.planning import hpa
from keepalive.planning.kpa.autoscaler import Autoscaler
from keepalive.planning.kpa.decider import TICK_S
from keepalive.planning.kpa.settings import ScalingMetric

if TYPE_CHECKING:
    from keepalive.planning.kpa.settings import AutoscalerSettings
    from keepalive.planning.simulation.serving import Second

WORKING = 0.7
"""The part of their capacity at which replicas are when a simulation begins."""
_ACTIVATOR = 10_000
"""Requests that the activator holds for a revision."""
_QUEUE = 10
"""Requests that a queue-proxy holds, for each that its replica works on at once."""
_UNLIMITED = 1_000_000


class Scaling(Protocol):
    """A rule."""

    def begin(self) -> int:
        """The replicas to start with when no floor asks for more."""

    def limit(self, ready: int) -> int:
        """How many requests may wait with that many replicas."""

    def decide(self, now: int, seen: Second, ready: int, wanted: int, floor: int) -> int:
        """How many there are to be from this second on.

        Args:
            now: the end of the second.
            seen: what happened in it.
            ready: replicas that are ready.
            wanted: replicas there were to be.
            floor: the least there may be.
        """


class KnativeScaling:
    """Knative's autoscaler, on a revision that is running.

    Args:
        settings: of the revision.
        batch: the largest batch, of which the rest of the container concurrency waits in a replica.
        ready: replicas at the start.
    """

    def __init__(self, settings: AutoscalerSettings, batch: int, ready: int) -> None:
        self._settings = settings
        self._ready = ready
        self._inside = max(0, settings.container_concurrency - batch)
        self._rps = settings.metric is ScalingMetric.RPS
        self._autoscaler = Autoscaler.running(settings, ready)

    def begin(self) -> int:
        """The replicas to start with when no floor asks for more."""
        return self._ready

    def limit(self, ready: int) -> int:
        """The activator's queue while it is in the path, else the queue-proxies'."""
        if not ready or self._autoscaler.activator_in_path:
            return _ACTIVATOR + self._inside * ready
        if not self._settings.container_concurrency:
            return _UNLIMITED
        return (self._inside + _QUEUE * self._settings.container_concurrency) * ready

    def decide(self, now: int, seen: Second, ready: int, wanted: int, floor: int) -> int:
        """Report, and every two seconds decide; load that meets no replica does not wait."""
        autoscaler = self._autoscaler
        load = seen.came if self._rps else seen.concurrency
        if ready or load:
            autoscaler.report(now, load)
        woken = not ready and load and autoscaler.desired == 0
        if now % TICK_S and not woken:
            return wanted
        autoscaler.tick(now, ready)
        most = self._settings.max_scale
        floor = max(floor, self._settings.min_scale)
        return autoscaler.reconcile(
            now, ready, wanted, min(floor, most) if most else floor
        ).replicas


class HpaScaling:
    """A HorizontalPodAutoscaler on how busy the replicas are, or on how many requests come.

    Args:
        spec: what is asked of it; its target is the busy part of a replica's time, or the requests
            per second for each replica.
        queue: how many requests each replica lets wait.
        ready: replicas at the start.
        requests: whether it looks at requests, counted before the replicas.
    """

    def __init__(
        self, spec: hpa.HpaSpec, queue: int, ready: int, *, requests: bool = False
    ) -> None:
        self._spec = spec
        self._queue = queue
        self._ready = max(ready, spec.min_replicas)
        self._requests = requests
        self._state = hpa.HpaState()
        self._load = 0.0
        self._served = 0
        self._usage: float | None = None

    def begin(self) -> int:
        """The replicas to start with when no floor asks for more."""
        return self._ready

    def limit(self, ready: int) -> int:
        """What the replicas let wait; without any, everything is refused."""
        return self._queue * ready

    def decide(self, now: int, seen: Second, ready: int, wanted: int, floor: int) -> int:
        """Decide every 15 seconds, from the average of the 15 seconds before the last such time.

        No pipeline of metrics is faster: they are scraped, averaged and only then asked for.
        """
        self._load += seen.came if self._requests else seen.busy
        self._served += ready
        if now % hpa.SYNC_S:
            return wanted
        usage, self._usage = self._usage, self._measured()
        self._load = self._served = 0
        if usage is None:
            return wanted
        observed = (
            # Requests belong to no replica: the sum counts, whether replicas are ready or not.
            hpa.HpaObservation(now, wanted, [usage / wanted] * wanted)
            if self._requests
            else hpa.HpaObservation(now, wanted, [usage] * ready, unready=max(0, wanted - ready))
        )
        least = min(max(self._spec.min_replicas, floor), self._spec.max_replicas)
        decision = hpa.decide(replace(self._spec, min_replicas=least), observed, self._state)
        self._state = decision.state
        return decision.replicas

    def _measured(self) -> float:
        """The busy part of all replicas' time, or requests per second."""
        if self._requests:
            return self._load / hpa.SYNC_S
        return min(1.0, self._load / self._served) if self._served else 0.0


class StaticScaling:
    """Always as many replicas, each of which lets `queue` requests wait."""

    def __init__(self, replicas: int, queue: int) -> None:
        self._replicas = replicas
        self._queue = queue

    def begin(self) -> int:
        """The replicas to start with."""
        return self._replicas

    def limit(self, ready: int) -> int:
        """What the replicas let wait."""
        return self._queue * ready

    def decide(self, now: int, seen: Second, ready: int, wanted: int, floor: int) -> int:  # noqa: ARG002
        """As many as ever, or the floor."""
        return max(self._replicas, floor)
