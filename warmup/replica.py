"""The life of one replica: load, warm, ready, then draining. It warms what is `Warmable`."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from warmup.phase import Phase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger("ember.replica")


class Warmable(Protocol):
    """What a replica can bring to ready."""

    async def load(self) -> None:
        """Verify and load every model; raises when one cannot be used."""
        ...

    async def warm(self) -> None:
        """Run real inferences through the path that serves; raises when a result is wrong."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One phase that the replica has entered: seconds since the replica began."""

    phase: Phase
    at_s: float


@dataclass(slots=True)
class Replica:
    """Phase, history and last error of one replica.

    Attributes:
        warmable: what is loaded and warmed.
        on_phase: called with every new phase, e.g. to count it.
    """

    warmable: Warmable
    on_phase: Callable[[Phase], None] = lambda _: None
    phase: Phase = Phase.STARTING
    steps: list[Step] = field(default_factory=list)
    last_error: str | None = None
    _began: float = field(default_factory=time.monotonic)
    _warming: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self._enter(Phase.STARTING)

    @property
    def ready(self) -> bool:
        """True only while the replica may take traffic."""
        return self.phase is Phase.READY

    async def warm(self, *, force: bool = False) -> None:
        """Bring the replica to ready. Callers at the same time share one warm-up.

        Args:
            force: repeat the warm-up of a replica that is ready. It stays able to serve meanwhile.

        Raises:
            Exception: whatever loading or warming raised; the phase is then `failed`.
        """
        if self._warming is None or (force and self._warming.done()):
            self._warming = asyncio.create_task(self._bring_up())
        await asyncio.shield(self._warming)

    def drain(self) -> None:
        """Stop being ready, for good."""
        if self.phase.may_become(Phase.DRAINING):
            self._enter(Phase.DRAINING)

    async def _bring_up(self) -> None:
        try:
            if self.phase is Phase.STARTING:
                await self._step(Phase.LOADING, self.warmable.load)
            if self.phase.may_become(Phase.WARMING):
                await self._step(Phase.WARMING, self.warmable.warm)
            if self.phase.may_become(Phase.READY):
                self._enter(Phase.READY)
        except Exception as error:
            self.last_error = f"{type(error).__name__}: {error}"
            log.exception("warm-up failed", extra={"phase": self.phase})
            if self.phase.may_become(Phase.FAILED):
                self._enter(Phase.FAILED)
            raise

    async def _step(self, phase: Phase, work: Callable[[], Awaitable[None]]) -> None:
        self._enter(phase)
        await work()

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self.steps.append(Step(phase, time.monotonic() - self._began))
        log.info("phase", extra={"phase": phase, "at_s": round(self.steps[-1].at_s, 3)})
        self.on_phase(phase)
