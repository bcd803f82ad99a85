"""Whose turn it is: the lane, the deadline and the whereabouts of one request.

It travels with the work as a context variable, into the threads as well, so that a batcher deep
below knows whom an item is for while the code between knows nothing of it.
"""

from __future__ import annotations

import math
import time
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum


class Lane(StrEnum):
    """A priority class, the most urgent first."""

    INTERACTIVE = "interactive"
    STANDARD = "standard"
    BULK = "bulk"

    def before(self, other: Lane) -> bool:
        """Whether it is more urgent."""
        return _ORDER[self] < _ORDER[other]


_ORDER = {lane: place for place, lane in enumerate(Lane)}

SHARES = {Lane.STANDARD: 20, Lane.BULK: 5}
"""What a lane gets at least while it has something waiting, in percent of all that is given out."""


@dataclass(slots=True)
class RequestContext:
    """What is known about who waits for a piece of work.

    Attributes:
        lane: how urgent it is.
        deadline: when the result is of no use any more, in seconds of `time.monotonic`.
        gone: whether nobody waits for it any more.
        quick: whether the photo may be looked at less closely.
        plain: whether faces are not enhanced.
        small: whether faces are made no larger than the model makes them.
        paid: the tokens that were taken for it; None where none are counted.
        faces: how many faces a photo may show; None for any number.
        begun: whether it has had a place, so that work may have been done for it.
        placed: when it got that, in seconds of `time.monotonic`.
    """

    lane: Lane = Lane.STANDARD
    deadline: float = math.inf
    gone: bool = False
    begun: bool = False
    placed: float = math.inf
    quick: bool = False
    plain: bool = False
    small: bool = False
    paid: int | None = None
    faces: int | None = None

    @property
    def void(self) -> bool:
        """Whether work for it that has not begun should never begin."""
        return self.gone or time.monotonic() >= self.deadline


def mine() -> RequestContext:
    """The running turn, or one of which nothing is known."""
    return current.get(None) or RequestContext()


current: ContextVar[RequestContext] = ContextVar("turn")
"""The turn that the running code works for; unset where it works for nobody, e.g. a warm-up."""
