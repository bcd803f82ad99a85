"""One simulation of one choice, and whether it keeps the objective."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keepalive.planning.search.profile import schedule
from keepalive.planning.simulation import scaling
from keepalive.planning.simulation.floors import floors
from keepalive.planning.simulation.run import Scenario, SecondsCache, simulate

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from keepalive.planning.search.choice import PlanChoice
    from keepalive.planning.simulation.options import SimulationInput
    from keepalive.planning.simulation.outcome import SimulationOutcome
    from keepalive.planning.simulation.service import BatchTimes
    from keepalive.prescaler.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Objective:
    """What is asked for.

    Attributes:
        p99_s: the highest 99th percentile of any five minutes.
        lost: the largest part of all requests that may be refused or given up.
    """

    p99_s: float
    lost: float = 0.0


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one choice.

    Attributes:
        name: for people.
        outcome: of the simulation.
        objective: what was asked for.
        choice: what was tried; None for the naive ones.
    """

    name: str
    outcome: SimulationOutcome
    objective: Objective
    choice: PlanChoice | None = None
    worst_p99_s: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "worst_p99_s", self.outcome.worst(0.99))

    @property
    def lost(self) -> float:
        """The part of all requests that was lost."""
        return self.outcome.lost / max(1, self.outcome.requests)

    @property
    def kept(self) -> bool:
        """Whether the objective is kept."""
        return self.worst_p99_s <= self.objective.p99_s and self.lost <= self.objective.lost

    @property
    def order(self) -> tuple[bool, float, float]:
        """Smaller is better: first what keeps the objective, then what costs less."""
        missed = max(0.0, self.worst_p99_s / self.objective.p99_s - 1) + 100 * self.lost
        hours = self.outcome.gpu_hours
        return (False, hours, self.worst_p99_s) if self.kept else (True, missed, hours)


class Trials:
    """Simulates choices on one load; each once.

    Args:
        given: load, replicas and cluster.
        objective: what is asked for.
        begin: the moment of the first second.
        timezone: of the schedule.

    Attributes:
        done: the choices that were tried.
    """

    def __init__(
        self, given: SimulationInput, objective: Objective, begin: datetime, timezone: ZoneInfo
    ) -> None:
        self.given = given
        self.objective = objective
        self._begin = begin
        self._timezone = timezone
        self._memo = SecondsCache()
        self.done: dict[PlanChoice, Trial] = {}

    def cold_s(self) -> float:
        """Seconds until a new replica is ready, at worst."""
        nodes = self.given.nodes
        return max(self.given.cold_starts) + (nodes.provision_s if nodes else 0.0)

    def schedule(self, choice: PlanChoice) -> Schedule:
        """The schedule that a choice means."""
        given = self.given
        return schedule(
            choice,
            given.rates,
            given.service,
            cold_s=self.cold_s(),
            begin=self._begin,
            timezone=self._timezone,
        )

    def begin_with(self, service: BatchTimes, most: int) -> int:
        """Replicas at the start, so that no simulation begins with too few or too many."""
        load = float(self.given.rates[0])
        return min(most, -int(-load // (scaling.WORKING * service.most_per_second)))

    def choice(self, choice: PlanChoice, seed: int = 0) -> Trial:
        """Try one, unless it was tried before.

        Args:
            choice: what to try.
            seed: added to that of the command; results with another one are not kept.
        """
        if not seed and choice in self.done:
            return self.done[choice]
        given = self.given
        service = given.service.up_to(choice.batch)
        settings = choice.settings(given.service)
        start = self.begin_with(service, choice.most)
        outcome = self.run(
            service,
            lambda: scaling.KnativeScaling(settings, choice.batch, max(start, choice.floor)),
            self.schedule(choice),
            seed,
        )
        trial = Trial("planned", outcome, self.objective, choice)
        if not seed:
            self.done[choice] = trial
        return trial

    def run(
        self,
        service: BatchTimes,
        rule: Callable[[], scaling.Scaling],
        planned: Schedule | None = None,
        seed: int = 0,
    ) -> SimulationOutcome:
        """Simulate any rule on the same load."""
        given = self.given
        return simulate(
            Scenario(
                given.rates,
                service,
                given.cold_starts,
                rule,
                floors(planned, self._begin, len(given.rates)) if planned else None,
                given.nodes,
                given.deadline_s,
                failures_per_hour=given.failures_per_hour,
                gpu_price=given.price,
                seed=given.seed + seed,
            ),
            self._memo,
        )
