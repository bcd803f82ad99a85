"""The degradation ladder: what is done less well, or not at all, while the queue is long.

The operator orders the rungs. One more is taken while a request would wait too long, and one is
left when that has not been so for a while: entering and leaving have different thresholds and take
time, so that the ladder does not swing. A request that is served on a rung says so.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from function.documented_enum import DocumentedEnum

if TYPE_CHECKING:
    from collections.abc import Callable

STEP_S = 1.0
"""How long a rung is given to help before the next one is taken."""
CALM_S = 10.0
"""How long the wait has to be short before a rung is left."""
LEAVE_PART = 0.25
"""The part of the wait that leads to a rung below which a wait is short."""


class Degradation(DocumentedEnum):
    """What can be done less well."""

    QUICK_SEARCH = (
        "quick-search",
        "photos are looked at as a whole only, so that small faces may be missed",
    )
    NO_ENHANCER = "no-enhancer", "faces are not enhanced"
    SMALLER_BOOST = "smaller-boost", "faces are made no larger than the model makes them"
    REFUSE_BULK = "refuse-bulk", "requests of the lane `bulk` are refused"


@dataclass(frozen=True, slots=True)
class LadderState:
    """How high one stands; times are seconds.

    Attributes:
        rungs: how many rungs are taken.
        changed: when that changed last.
        calm: since when the wait is short; None while it is not.
    """

    rungs: int = 0
    changed: float = float("-inf")
    calm: float | None = None


def decide(
    height: LadderState, now: float, wait_s: float, *, rungs: int, enter_s: float
) -> LadderState:
    """Where to stand now.

    Args:
        height: where one stands.
        now: seconds; never less than before.
        wait_s: how long a request would wait for a place.
        rungs: how many there are.
        enter_s: the wait that leads to the next rung.
    """
    if wait_s >= enter_s:
        if height.rungs < rungs and now - height.changed >= STEP_S:
            return LadderState(height.rungs + 1, now)
        return replace(height, calm=None)
    if wait_s > enter_s * LEAVE_PART:
        return replace(height, calm=None)
    if height.calm is None:
        return replace(height, calm=now)
    left = min(height.rungs, int((now - height.calm) / CALM_S))
    if not left:
        return height
    return LadderState(height.rungs - left, now, height.calm + left * CALM_S)


class DegradationPolicy:
    """The rungs in their order, and where the replica stands.

    Args:
        rungs: in the order in which they are taken.
        enter_s: the wait that leads to the next one.
        clock: seconds.
    """

    def __init__(
        self,
        rungs: tuple[Degradation, ...],
        enter_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rungs, self._enter_s, self._clock = rungs, enter_s, clock
        self._height = LadderState()

    @property
    def taken(self) -> tuple[Degradation, ...]:
        """The rungs that were taken when somebody last looked."""
        return self.rungs[: self._height.rungs]

    def look(self, wait_s: float) -> tuple[Degradation, ...]:
        """The rungs that are taken, now that a request would wait so long."""
        if self.rungs:
            self._height = decide(
                self._height, self._clock(), wait_s, rungs=len(self.rungs), enter_s=self._enter_s
            )
        return self.taken
