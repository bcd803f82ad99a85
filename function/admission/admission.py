"""Who may have what of a replica now: the parts that decide, and what may be asked of them."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function import tasks
from function.admission.admitted import AdmittedRequest
from function.admission.caller import RequestCaller
from function.admission.degradation import Degradation
from function.request_context import Lane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from function.admission.byte_budget import ByteBudget
    from function.admission.caller import Authority
    from function.admission.degradation import DegradationPolicy
    from function.admission.load import LoadEstimator
    from function.admission.policy import Policy, Prices
    from function.admission.quota import Quota


@dataclass(frozen=True, slots=True)
class Admission:
    """Lets requests in, with their lane and their deadline, or says why not and when to return.

    Attributes:
        policy: what jobs cost and what callers may have.
        authority: knows callers; None where nobody has to say who he is.
        quota: takes tokens.
        load: how long a request would wait for a slot.
        bodies: the bytes that bodies may take.
        degradation: what is done less well while that wait is long.
        timeout_s: how long a request may take that does not ask for less.
    """

    policy: Policy
    authority: Authority | None
    quota: Quota
    load: LoadEstimator
    bodies: ByteBudget
    degradation: DegradationPolicy
    timeout_s: float = math.inf

    @property
    def prices(self) -> Prices:
        """The price list."""
        return self.policy.prices

    async def identify(self, credentials: str) -> RequestCaller:
        """Who has these credentials; anybody where nobody has to say who he is.

        Raises:
            RejectedError: they are not good.
            Problem: `auth_unavailable`; `forbidden` for a tier that the policy does not know.
        """
        if self.authority is None:
            anonymous = self.policy.anonymous
            return RequestCaller(None, anonymous, anonymous.highest)
        caller = await self.authority.caller(credentials)
        return caller.within(self.policy)

    def admit(
        self,
        caller: RequestCaller,
        lane: Lane | None = None,
        *,
        began: float,
        wanted_s: float = math.inf,
        waits: bool = True,
    ) -> AdmittedRequest:
        """Let a request in while the body of `async with` runs, and no longer than to its deadline.

        Entering and leaving it raise `Problem`: `overloaded`, `deadline_exceeded`.

        Args:
            caller: who sends it.
            lane: the lane that it asks for; None for its caller's usual one.
            began: when it came, in seconds of `time.monotonic`.
            wanted_s: how many seconds its client wants to wait at most.
            waits: whether it will wait for a slot.
        """
        return AdmittedRequest(self, caller, lane, began, wanted_s, waits=waits)

    def degradations(self) -> tuple[Degradation, ...]:
        """What is done less well, with the wait for a slot as it is now."""
        if not self.degradation.order:
            return ()
        return self.degradation.update(self.load.wait_s(Lane.STANDARD))

    def pause_s(self, lane: Lane = Lane.BULK) -> float | None:
        """For how many seconds nothing more of a lane is to be begun with; None for not at all."""
        if refusal := self.load.refusal(lane):
            return refusal.again_s
        if lane is Lane.BULK and Degradation.REFUSE_BULK in self.degradations():
            return self.load.load.wait_s(lane)
        return None

    async def running(self, _: object) -> AsyncIterator[None]:
        """Ask other services before the first request does; at the end, leave them."""
        work = [part.prepare() for part in (self.authority, self.quota) if part]
        preparing = [asyncio.create_task(each) for each in work]
        yield
        await tasks.end(*preparing)
        await self.quota.close()
