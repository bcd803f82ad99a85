"""The parts of admission, as one value."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function import tasks
from function.request_context import Lane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from function.admission.byte_budget import ByteBudget
    from function.admission.caller import Authority
    from function.admission.degradation import Degradation, DegradationPolicy
    from function.admission.load import LoadEstimator
    from function.admission.policy import Policy
    from function.admission.quota import Quota


@dataclass(frozen=True, slots=True)
class AdmissionParts:
    """The parts of admission.

    Attributes:
        policy: what jobs cost and what callers may have.
        authority: knows callers; None where nobody has to say who he is.
        quota: takes tokens.
        queue: knows how long a request would wait.
        room: for bodies.
        ladder: what is done less well while the queue is long.
    """

    policy: Policy
    authority: Authority | None
    quota: Quota
    queue: LoadEstimator
    room: ByteBudget
    ladder: DegradationPolicy

    def look(self) -> tuple[Degradation, ...]:
        """What is done less well, as long as the queue is now."""
        if not self.ladder.rungs:
            return ()
        return self.ladder.look(self.queue.wait_s(Lane.STANDARD))

    async def running(self, _: object) -> AsyncIterator[None]:
        """Ask other services before the first request does; at the end, leave them."""
        work = [part.prepare() for part in (self.authority, self.quota) if part]
        preparing = [asyncio.create_task(each) for each in work]
        yield
        await tasks.end(*preparing)
        await self.quota.close()
