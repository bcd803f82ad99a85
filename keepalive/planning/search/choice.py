"""One set of settings that the planner tries, and what it means to Knative."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from keepalive.planning.kpa.settings import AutoscalerSettings, ScalingMetric

if TYPE_CHECKING:
    from keepalive.planning.simulation.service import BatchTimes


class Cover(StrEnum):
    """For which part of the load the schedule raises the floor."""

    NONE = "none"
    RAMPS = "ramps"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """What is chosen.

    Attributes:
        batch: the largest batch.
        metric: what the autoscaler counts.
        use: the part of a replica's capacity that is aimed for.
        cover: for which part of the load the schedule raises the floor: nowhere, where the load
            climbs faster than replicas start, or everywhere.
        floor: replicas outside all windows.
        most: the most replicas.
        window_s: the stable window.
        delay_s: how long scaling down is held back.
        activation: the fewest replicas while there is load, when the floor is 0.
        lead_s: how long before a window its floor is there.
    """

    batch: int
    metric: ScalingMetric
    use: float
    cover: Cover
    floor: int
    most: int
    window_s: int
    delay_s: int
    activation: int
    lead_s: int

    def rate(self, service: BatchTimes) -> float:
        """Requests per second that each replica is to have."""
        return self.use * service.up_to(self.batch).most_per_second

    def target(self, service: BatchTimes) -> float:
        """The target in the metric: requests per second, or how many are inside at that rate."""
        rate = self.rate(service)
        return round(rate if self.metric is ScalingMetric.RPS else inside(service, rate), 1)

    def settings(self, service: BatchTimes) -> AutoscalerSettings:
        """As Knative's autoscaler has them; the activator stays in the path and queues."""
        return AutoscalerSettings(
            container_concurrency=2 * self.batch,
            metric=self.metric,
            target=self.target(service),
            utilisation=1.0,
            stable_window_s=self.window_s,
            min_scale=self.floor,
            max_scale=self.most,
            initial_scale=max(1, self.floor),
            activation_scale=self.activation,
            scale_down_delay_s=self.delay_s,
            target_burst_capacity=-1,
        )

    def replicas(self, load: float, service: BatchTimes) -> int:
        """How many that load asks for."""
        return min(self.most, math.ceil(load / self.rate(service) - 1e-9))


def inside(service: BatchTimes, rate: float) -> float:
    """Requests inside one replica at that rate: one batch at work, half of the next one waiting.

    In balance a batch is what came while the one before it ran, so it is the smallest size that is
    not below rate × time(size).
    """
    for size, time in enumerate(service.times, start=1):
        if size >= rate * time:
            return 1.5 * rate * time
    return 1.5 * service.batch
