"""What people choose without looking, to compare with."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from keepalive.planning.hpa import HpaSpec
from keepalive.planning.kpa.settings import AutoscalerSettings
from keepalive.planning.search.trial import Trial
from keepalive.planning.simulation import scaling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepalive.planning.search.trial import Trials

_BUSY = 0.7
_QUEUE = 10
"""Requests that a replica without Knative lets wait, for each that it works on at once."""


def naive(trials: Trials, most: int) -> Iterator[Trial]:
    """Simulate them with at most so many replicas: the peak's, Knative's defaults, an HPA's."""
    yield static_peak(trials, most)
    service = trials.given.service
    start = trials.begin_with(service, most)
    for floor, name in ((0, "min-scale 0"), (1, "min-scale 1, kept warm")):
        settings = AutoscalerSettings(
            container_concurrency=2 * service.batch, min_scale=floor, max_scale=most
        )

        rule = partial(scaling.KnativeScaling, settings, service.batch, max(start, floor))
        yield Trial(name, trials.run(service, rule), trials.objective)
    queue = _QUEUE * 2 * service.batch
    spec = HpaSpec(_BUSY, most, 1)
    yield Trial(
        "HPA 70 % busy",
        trials.run(service, partial(scaling.HpaScaling, spec, queue, start)),
        trials.objective,
    )


def static_peak(trials: Trials, most: int) -> Trial:
    """Always as many as the peak needs: the fewest that keep the objective, else the most."""
    service = trials.given.service
    queue = _QUEUE * 2 * service.batch
    peak = float(trials.given.rates.max())
    replicas = min(most, math.ceil(peak / service.most_per_second - 1e-9))
    while True:
        outcome = trials.run(service, partial(scaling.StaticScaling, replicas, queue))
        trial = Trial(f"static peak, {replicas}", outcome, trials.objective)
        if trial.kept or replicas >= most:
            return trial
        replicas += 1
