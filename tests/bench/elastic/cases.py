"""The cases of `make bench-elastic`: a load, replicas, an objective, and how far to search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np

from keepalive.planning import hpa
from keepalive.planning.kpa.settings import AutoscalerSettings, ScalingMetric
from keepalive.planning.search.choice import Cover, PlanChoice
from keepalive.planning.search.descent import Bounds
from keepalive.planning.search.trial import Objective, Trials
from keepalive.planning.simulation import scaling
from keepalive.planning.simulation.floors import floors
from keepalive.planning.simulation.options import SimulationInput
from keepalive.planning.simulation.run import Scenario, simulate
from keepalive.planning.simulation.service import BatchTimes, line
from keepalive.planning.traces import shapes
from keepalive.prescaler.schedule import FloorWindow, Schedule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from keepalive.planning.simulation.outcome import SimulationOutcome

UTC = ZoneInfo("UTC")
MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
COLD_STARTS = (22.0, 25.0, 26.0, 28.0, 30.0)
"""Seconds: a GPU is there, the image is on its node, weights come from the store of the node."""
PRICE = 2.5
"""Of a GPU for an hour."""


@dataclass(frozen=True)
class Case:
    """One load with what is asked for.

    Attributes:
        name: for people.
        rates: (seconds,) requests per second.
        service: one replica.
        objective: what has to be kept.
        bounds: how far to search.
        static: replicas of the static service that it is compared with; None for the fewest that
            keep the objective.
        most_cost: the largest part of the static GPU-hours that is allowed.
        choice: what the search finds, for the tests.
    """

    name: str
    rates: NDArray[np.float64]
    service: BatchTimes
    objective: Objective
    bounds: Bounds
    static: int | None
    most_cost: float
    choice: PlanChoice

    def trials(self) -> Trials:
        given = SimulationInput(self.rates, self.service, COLD_STARTS, None, 45.0, 0.0, PRICE, 0)
        return Trials(given, self.objective, MONDAY, UTC)


FLASH = Case(
    name="flash crowd, 50 to 800 requests/s in 5 min",
    rates=shapes.flash(50, 800, hour=12, rise_s=300, hold_s=1800, fall_s=1800),
    service=line(0.040, 0.018, 16),  # 48.8 requests/s: 17 replicas for the peak
    objective=Objective(0.8),
    bounds=Bounds(2, 20, 40),
    static=None,
    most_cost=0.5,
    choice=PlanChoice(
        batch=8, metric=ScalingMetric.RPS, use=0.8, cover=Cover.RAMPS, floor=2, most=20,
        window_s=60, delay_s=0, activation=0, lead_s=120,
    ),
)  # fmt: skip

TIDE = Case(
    name="tide, 1,000 to 3,500 requests/s",
    rates=shapes.tide(1000, 3500, peak_hour=20, sharpness=3),
    service=line(0.008, 0.0012, 32),  # 690 requests/s: 8 replicas are at 63 % at the peak
    objective=Objective(0.2),
    bounds=Bounds(1, 8, 20),
    static=8,
    most_cost=0.42,
    choice=PlanChoice(
        batch=32, metric=ScalingMetric.RPS, use=0.95, cover=Cover.NONE, floor=1, most=8,
        window_s=60, delay_s=0, activation=0, lead_s=120,
    ),
)  # fmt: skip


FRIDAY = 4 * shapes.DAY_S
SATURDAY = 5 * shapes.DAY_S


QUICK_TIDE = replace(TIDE, name=f"{TIDE.name} in 6 hours", rates=TIDE.rates[::4])
"""Simulated four times as soon; it climbs four times as steeply."""


def office() -> NDArray[np.float64]:
    """(a week,) a tool for the office: up to two requests a second from 8 to 18, and at the weekend
    somebody every twenty minutes or so, from 10 to 16."""
    at = np.arange(7 * shapes.DAY_S)
    hour, day = at % shapes.DAY_S / 3600, at // shapes.DAY_S
    working = np.where((hour >= 8) & (hour < 18), 2 * np.sin(np.pi * (hour - 8) / 10), 0.01)
    weekend = np.where((hour >= 10) & (hour < 16), 1 / 1200, 0.0)
    return np.where(day < 5, working, weekend)


WEEKDAYS = Schedule(
    timezone=UTC,
    lead=timedelta(minutes=12),
    floor=0,
    max_floor=4,
    windows=(FloorWindow("0 0 * * mon-fri", timedelta(hours=24), 1),),
)
"""One replica on working days, none at the weekend."""


SURGE = shapes.flash(200, 600, 7200, hour=0.5, rise_s=90, hold_s=1800, fall_s=900)
"""(two hours,) 200 requests a second, 600 within a minute and a half, and back."""
_UP = hpa.ScalingRules(
    0,
    (
        hpa.ScalingPolicy(hpa.PolicyUnit.PERCENT, 100, 15),
        hpa.ScalingPolicy(hpa.PolicyUnit.PODS, 4, 15),
    ),
)
_DOWN = hpa.ScalingRules(
    300,
    (
        hpa.ScalingPolicy(hpa.PolicyUnit.PERCENT, 10, 60),
        hpa.ScalingPolicy(hpa.PolicyUnit.PODS, 1, 60),
    ),
    hpa.PolicySelect.MIN,
)
"""As the component qps-hpa has it."""


def surge(target: float, *, requests: bool = True) -> SimulationOutcome:
    """The surge under the HPA of qps-hpa, at so many requests a second (or so busy) a replica."""
    spec = hpa.HpaSpec(target, 30, 2, _UP, _DOWN)
    rule = partial(scaling.HpaScaling, spec, 320, 5, requests=requests)
    return simulate(Scenario(SURGE, FLASH.service, COLD_STARTS, rule, gpu_price=PRICE))


@dataclass(frozen=True)
class Drill:
    """What becomes of the requests when one of two clusters is gone.

    Attributes:
        lost: requests that went to it until nothing was sent there any more, and those that the
            other one refused or answered too late.
        most_p99_s: the 99th percentile of the worst minute in the other cluster.
        recovered_s: seconds from the loss until every minute keeps the objective again.
    """

    lost: int
    most_p99_s: float
    recovered_s: int


LOST_AT = 1800
"""The second in which the cluster is gone."""


def drill(floor: int, noticed_s: int, *, rate: float = 200.0, p99_s: float = 0.8) -> Drill:
    """Two clusters with half of the load each, of which one is gone from one second to the next.

    Args:
        floor: replicas that each keeps at least.
        noticed_s: until everything goes to the other one: what health checks and DNS need.
        rate: requests per second of all.
        p99_s: the objective.
    """
    rates = np.full(2 * LOST_AT, rate / 2)
    rates[LOST_AT + noticed_s :] = rate
    settings = AutoscalerSettings(
        container_concurrency=16, metric=ScalingMetric.RPS, target=30, utilisation=1.0,
        min_scale=floor, max_scale=20,
    )  # fmt: skip
    service = FLASH.service.up_to(8)
    rule = partial(scaling.KnativeScaling, settings, 8, floor)
    outcome = simulate(Scenario(rates, service, COLD_STARTS, rule))
    tails = outcome.by_minute(0.99)[LOST_AT // 60 :]
    missed = [minute for minute, tail in enumerate(tails) if tail > p99_s]
    return Drill(
        round(rate / 2 * noticed_s) + outcome.lost,
        float(tails.max()),
        max(noticed_s, 60 * (missed[-1] + 1) if missed else 0),
    )


def week(schedule: Schedule | None, floor: int, first: int = 0) -> SimulationOutcome:
    """The office's week from that second on, with a schedule or with a floor that stays."""
    rates = office()[first:]
    begin = MONDAY + timedelta(seconds=first)
    settings = AutoscalerSettings(
        container_concurrency=8, utilisation=1.0, min_scale=floor, max_scale=4
    )
    return simulate(
        Scenario(
            rates,
            line(0.040, 0.018, 4),
            COLD_STARTS,
            partial(scaling.KnativeScaling, settings, 4, max(1, floor)),
            floors(schedule, begin, len(rates)) if schedule else None,
            gpu_price=PRICE,
        )
    )
