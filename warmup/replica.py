"""The life of one replica: fetch, load, warm, ready, draining. It warms what is `Warmable`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextvars import Context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from warmup.failures import public_reason
from warmup.phase import IllegalStep, Phase
from warmup.retry import Retry
from warmup.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    _Work = tuple[Phase, Callable[[], Awaitable[None]]]

log = logging.getLogger("ember.replica")

_STEPS_KEPT = 100


class Warmable(Protocol):
    """What a replica can bring to ready. Each call may be repeated and then does what is left."""

    @property
    def fetches(self) -> bool:
        """Whether there may be something to fetch."""
        ...

    @property
    def cold(self) -> bool:
        """Whether a request could still have to wait for something to be loaded."""
        ...

    async def fetch(self) -> None:
        """Get every file onto this machine; raises when one cannot be had."""
        ...

    async def load(self, *, whole: bool) -> None:
        """Load every model, or (not whole) those that are not left for the first request.

        Raises when one cannot be used.
        """
        ...

    async def warm(self) -> None:
        """Run real inferences through the path that serves; raises when a result is wrong."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One phase that the replica has entered: seconds since the process started."""

    phase: Phase
    at_s: float


@dataclass(slots=True)
class Replica:
    """Phase, history and last error of one replica.

    Attributes:
        warmable: what is fetched, loaded and warmed.
        retry: how long a failed start is tried again before the replica has failed for good.
        timeline: gets a span for each phase until the replica is ready for the first time.
        listeners: called with every new phase, e.g. to count it.
        steps: the phases so far, the latest last; of very many the earliest are forgotten.
        last_error: why the replica is not ready, if something failed; fit to be published.
        served: whether it has ever been ready.
    """

    warmable: Warmable
    retry: Retry = field(default_factory=lambda: Retry(total_s=0))
    timeline: Timeline = field(default_factory=Timeline)
    listeners: list[Callable[[Phase], None]] = field(default_factory=list)
    phase: Phase = Phase.STARTING
    steps: deque[Step] = field(default_factory=lambda: deque(maxlen=_STEPS_KEPT))
    last_error: str | None = None
    served: bool = False
    _attempt: asyncio.Task[None] | None = None
    _again: asyncio.TimerHandle | None = None
    _failures: int = 0
    _failing_since: float = 0.0

    def __post_init__(self) -> None:
        self._note()

    @property
    def ready(self) -> bool:
        """True only while the replica may take traffic."""
        return self.phase is Phase.READY

    @property
    def serves(self) -> bool:
        """Whether calls that come nevertheless are answered.

        A replica that was ready does so while it warms again and while it drains, but not after
        something has failed.
        """
        return self.served and self.last_error is None

    @property
    def next_try_s(self) -> float | None:
        """Seconds until the next try, while the replica waits after a failure."""
        if self._again is None:
            return None
        return max(0.0, self._again.when() - asyncio.get_running_loop().time())

    def start(self) -> None:
        """Begin to bring the replica to ready. What is left for the first request stays cold."""
        self._begin(whole=False)

    async def warm(self, *, force: bool = False) -> None:
        """Load and warm everything. Callers at the same time share one warm-up.

        A replica that waits to try again does so at once. For one that is draining or has failed
        there is nothing to do.

        Args:
            force: repeat the warm-up of a replica that is ready.

        Raises:
            Exception: whatever fetching, loading or warming raised.
        """
        for _ in range(2):  # one that is under way may be about to leave something cold
            if self._attempt is None or self._attempt.done():
                if self.ready and not (force or self.warmable.cold):
                    return
                if not self.phase.may_become(Phase.DRAINING):
                    return
                self._begin(whole=True)
            force = False
            await self._join()

    def repair(self, error: Exception) -> None:
        """Leave readiness because of an error, and come back by a whole warm-up or not at all."""
        if _is_final(error):
            self.fail(error)
        elif self.ready:
            log.error("not ready any more", exc_info=error)
            self._begin(whole=True)
            self.last_error = public_reason(error)

    def fail(self, error: Exception) -> None:
        """Never be ready again, as only a new process can help."""
        if self.phase.may_become(Phase.FAILED):
            log.error("failed for good", exc_info=error)
            self.last_error = public_reason(error)
            self._forget_timer()
            self._enter(Phase.FAILED)
            if self._attempt:
                self._attempt.cancel()

    def drain(self) -> None:
        """Stop being ready, for good; what is being loaded or warmed is given up."""
        if self.phase.may_become(Phase.DRAINING):
            self._enter(Phase.DRAINING)
            self._forget_timer()
            if self._attempt:
                self._attempt.cancel()

    def _begin(self, *, whole: bool) -> None:
        self._forget_timer()
        plan = self._plan(whole=whole)
        self._enter(plan[0][0])
        # It works for nobody, also where a request has found out that it is needed.
        self._attempt = asyncio.create_task(self._bring_up(plan, whole=whole), context=Context())
        # Nobody may be waiting for it; what it raises is in `last_error`.
        self._attempt.add_done_callback(lambda task: task.cancelled() or task.exception())

    def _plan(self, *, whole: bool) -> list[_Work]:
        """The steps from here to ready, beginning with the one that failed, if one did."""
        plan: list[_Work] = [
            (Phase.FETCHING, self.warmable.fetch),
            (Phase.LOADING, lambda: self.warmable.load(whole=whole)),
            (Phase.WARMING, self.warmable.warm),
        ]
        first = {
            Phase.STARTING: Phase.FETCHING if self.warmable.fetches else Phase.LOADING,
            Phase.READY: Phase.LOADING if self.warmable.cold else Phase.WARMING,
        }.get(self.phase, self.phase)
        return plan[[phase for phase, _ in plan].index(first) :]

    async def _bring_up(self, plan: list[_Work], *, whole: bool) -> None:
        try:
            for phase, work in plan:
                self._enter(phase)
                with self.timeline.span(phase):
                    await work()
        except Exception as error:
            self._failed(error, whole=whole)
            raise
        self._failures, self.last_error, self.served = 0, None, True
        self._enter(Phase.READY)
        self.timeline.finish()

    def _failed(self, error: Exception, *, whole: bool) -> None:
        self.last_error = public_reason(error)
        now = time.monotonic()
        if not self._failures:
            self._failing_since = now
        self._failures += 1
        since_s = now - self._failing_since
        pause = None if _is_final(error) else self.retry.pause(self._failures, since_s)
        facts = {"phase": self.phase, "failures": self._failures, "again_in_s": pause}
        log.error("warm-up failed", exc_info=error, extra=facts)
        if pause is None:
            self._enter(Phase.FAILED)
        else:
            loop = asyncio.get_running_loop()
            self._again = loop.call_later(pause, lambda: self._begin(whole=whole))

    async def _join(self) -> None:
        """Wait for the attempt; a caller that goes away does not stop it, draining does."""
        attempt = self._attempt
        if attempt:
            await asyncio.wait({attempt})
            if not attempt.cancelled():
                attempt.result()

    def _forget_timer(self) -> None:
        if self._again:
            self._again.cancel()
            self._again = None

    def _enter(self, later: Phase) -> None:
        if later is self.phase:
            return  # the same step once more
        if not self.phase.may_become(later):
            raise IllegalStep(self.phase, later)
        self.phase = later
        self._note()
        for listener in self.listeners:
            listener(later)

    def _note(self) -> None:
        step = Step(self.phase, self.timeline.now())
        self.steps.append(step)
        log.info("phase", extra={"phase": step.phase, "at_s": round(step.at_s, 3)})


def _is_final(error: Exception) -> bool:
    """Whether an error says of itself that trying again in this process is of no use."""
    return bool(getattr(error, "final", False))
