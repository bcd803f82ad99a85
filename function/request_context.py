"""What is known about the request that the running code works for: its lane, deadline and limits.

It travels with the work as a context variable, into the threads as well, so that a batcher deep
below knows whom an item is for while the code between knows nothing of it.
"""

from __future__ import annotations

import math
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


_ORDER = {lane: rank for rank, lane in enumerate(Lane)}

SHARES = {Lane.STANDARD: 20, Lane.BULK: 5}
"""What a lane gets at least while it has something waiting, in percent of all that is given out."""


class Entry(StrEnum):
    """The way in that a request took."""

    HTTP = "http"
    JOB = "job"
    EVENT = "event"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Sender:
    """Who asked for work, as far as an account of it needs to know.

    Attributes:
        entry: the way in.
        request_id: of the request, job or event.
        subject: who it is; None where nobody has to say.
        tier: the tier of the caller; "" where there is none.
    """

    entry: Entry
    request_id: str
    subject: str | None = None
    tier: str = ""


@dataclass(slots=True)
class RequestContext:
    """One request, or one target of a job, as far as those who work for it need to know.

    Attributes:
        lane: how urgent it is.
        deadline: when the result is of no use any more, in seconds of `time.monotonic`.
        abandoned: whether nobody waits for the result any more.
        started_at: when it got its slot, in seconds of `time.monotonic`; infinite before that.
        quick_search: whether the photo may be searched less closely.
        skip_enhancer: whether faces are not enhanced.
        smallest_boost: whether faces are made no larger than the model makes them.
        paid: the tokens that were taken for it; None where none are counted.
        max_faces: how many faces a photo may show; None for any number.
        sender: who asked for it; None for work of the replica's own, such as a warm-up.
    """

    lane: Lane = Lane.STANDARD
    deadline: float = math.inf
    abandoned: bool = False
    started_at: float = math.inf
    quick_search: bool = False
    skip_enhancer: bool = False
    smallest_boost: bool = False
    paid: int | None = None
    max_faces: int | None = None
    sender: Sender | None = None

    @property
    def started(self) -> bool:
        """Whether it has had a slot, so that work may have been done for it."""
        return self.started_at < math.inf


INTERNAL = RequestContext(Lane.INTERACTIVE)
"""Work for no request, e.g. a warm-up: never abandoned and without a deadline. Never changed."""

current: ContextVar[RequestContext] = ContextVar("request", default=INTERNAL)
"""The request that the running code works for."""
