"""What is done less well, or not at all, while requests would wait too long.

The operator orders the degradations. One more is taken while a request would wait too long, and
one is left when that has not been so for a while: entering and leaving have different thresholds
and take time, so that the policy does not swing. A request that is served so says it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from function.documented_enum import DocumentedEnum

if TYPE_CHECKING:
    from collections.abc import Callable

STEP_S = 1.0
"""How long a degradation is given to help before the next one is taken."""
CALM_S = 10.0
"""How long the wait has to be short before one is left."""
LEAVE_PART = 0.25
"""The part of the wait that leads to a degradation below which a wait is short."""


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
class DegradationLevel:
    """How many degradations are taken; times are seconds.

    Attributes:
        taken: how many.
        changed: when that changed last.
        calm: since when the wait is short; None while it is not.
    """

    taken: int = 0
    changed: float = float("-inf")
    calm: float | None = None


def decide(
    level: DegradationLevel, now: float, wait_s: float, *, most: int, enter_s: float
) -> DegradationLevel:
    """The level from now on.

    An example with `enter_s` of 2: waits of 3 seconds take one degradation at once and the next
    after a second. Then waits of 1 second change nothing, as they are neither long nor short; ten
    seconds with waits of at most 0.5 leave one, and ten more the other.

    Args:
        level: the level so far.
        now: seconds; never less than before.
        wait_s: how long a request would wait for a slot.
        most: how many degradations there are.
        enter_s: the wait that leads to the next one.
    """
    if wait_s >= enter_s:
        if level.taken < most and now - level.changed >= STEP_S:
            return DegradationLevel(level.taken + 1, now)
        return replace(level, calm=None)
    if wait_s > enter_s * LEAVE_PART:
        return replace(level, calm=None)
    if level.calm is None:
        return replace(level, calm=now)
    left = min(level.taken, int((now - level.calm) / CALM_S))
    if not left:
        return level
    return DegradationLevel(level.taken - left, now, level.calm + left * CALM_S)


class DegradationPolicy:
    """The degradations in their order, and how many of them are taken.

    Args:
        order: in which they are taken.
        enter_s: the wait that leads to the next one.
        clock: seconds.
    """

    def __init__(
        self,
        order: tuple[Degradation, ...],
        enter_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.order, self._enter_s, self._clock = order, enter_s, clock
        self._level = DegradationLevel()

    def update(self, wait_s: float) -> tuple[Degradation, ...]:
        """Those that are taken, now that a request would wait so long."""
        if self.order:
            self._level = decide(
                self._level, self._clock(), wait_s, most=len(self.order), enter_s=self._enter_s
            )
        return self.order[: self._level.taken]
