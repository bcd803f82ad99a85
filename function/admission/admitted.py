"""A request that was let in: what it may have, pays and waits for."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from function.admission.degradation import CALM_S, Degradation
from function.problems import DeadlinePassedError, Problem, RetryLaterError, retry_after
from function.request_context import Lane, RequestContext, current

if TYPE_CHECKING:
    from collections.abc import Collection
    from contextvars import Token
    from types import TracebackType
    from typing import Self

    from function.admission.account import Receipt
    from function.admission.admission import Admission
    from function.admission.caller import RequestCaller
    from function.admission.load import InFlight, Refusal
    from function.admission.policy import Prices
    from function.admission.quota import Standing

_SEARCHING = (Degradation.QUICK_SEARCH,)


class AdmittedRequest:
    """One request; `Admission.admit` makes it.

    Attributes:
        caller: who sends it.
        context: its lane and its deadline.
        timer: ends it at its deadline.
        degradations: what is done less well for it.
        standing: how its caller stood when tokens were last asked for; None before that, and where
            the store could not be asked.
    """

    __slots__ = (
        "_admission",
        "_invited",
        "_lane",
        "_refusal",
        "_token",
        "_waits",
        "_wanted_s",
        "caller",
        "context",
        "degradations",
        "standing",
        "timer",
    )

    timer: asyncio.Timeout
    _token: Token[RequestContext]

    def __init__(
        self,
        admission: Admission,
        caller: RequestCaller,
        lane: Lane | None,
        began: float,
        wanted_s: float,
        *,
        waits: bool,
    ) -> None:
        self._admission, self.caller, self._lane, self._wanted_s = admission, caller, lane, wanted_s
        deadline = began + min(wanted_s, admission.timeout_s)
        self.context = RequestContext(lane or caller.usual_lane, deadline)
        self.degradations: tuple[Degradation, ...] = ()
        self.standing: Standing | None = None
        self._invited: bool | None = None  # whether it was asked to come now, once that is known
        self._refusal: Refusal | None = None  # why it waits no longer
        self._waits = waits

    async def __aenter__(self) -> Self:
        if self._waits:
            self.check()  # once more when the body is there, but why send it in vain
        self.timer = asyncio.timeout(self.context.deadline - time.monotonic())
        await self.timer.__aenter__()
        self._token = current.set(self.context)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.context.abandoned = True
        current.reset(self._token)
        try:
            await self.timer.__aexit__(kind, error, where)
        except TimeoutError:
            raise self._too_late() from None
        if isinstance(error, DeadlinePassedError):  # what it waited for saw that before the timer
            raise self._too_late() from None

    @property
    def job_lane(self) -> Lane:
        """The lane of a job that it makes: what it asks for, else what its tier says."""
        usual, lane = self.caller.tier.jobs, self.context.lane
        return lane if self._lane or usual.before(lane) else usual

    @property
    def prices(self) -> Prices:
        """The price list."""
        return self._admission.prices

    @property
    def pays(self) -> bool:
        """Whether its caller's tokens are counted."""
        return self.caller.account is not None

    def work(self, tokens: int, possible: Collection[Degradation] = _SEARCHING) -> PaidWork:
        """Take the price, and let the body of `async with`, a call of the service, wait for a slot.

        How long it held it is learned. The price is given back when it ends without having had one.
        Entering raises `Problem`: `overloaded`, `quota_exhausted`, `quota_unavailable`.

        Args:
            tokens: the price.
            possible: the degradations by which this would be done less well.
        """
        return PaidWork(self, tokens, possible)

    async def start(self, tokens: int, possible: Collection[Degradation]) -> Receipt | None:
        """Take the price of work that may wait for a slot.

        Raises:
            Problem: `overloaded`, `quota_exhausted`, `quota_unavailable`.
        """
        self.check()
        self._degrade(possible)
        receipt = await self.pay(tokens)
        self.context.max_faces = self.prices.covers(tokens)
        if receipt:
            try:
                self.check()  # others may have come meanwhile
            except Problem:
                self.refund(receipt)
                raise
        return receipt

    def enter(self) -> InFlight:
        """Count it among the requests in flight, until the end of `with`."""
        return self._admission.load.enter(self.context, self._give_up)

    def end(self, receipt: Receipt | None, *, failed: bool) -> None:
        """Give back the price of work that has failed before it had a slot."""
        self._admission.degradations()
        if failed and receipt and not self.context.started:
            self.refund(receipt)

    def refund(self, receipt: Receipt) -> None:
        """Give tokens back."""
        if self.caller.subject is not None:
            self._admission.quota.refund(self.caller.subject, receipt)

    def check(self) -> None:
        """See that the request may wait for a slot, and can have one in time.

        Raises:
            Problem: `overloaded`.
        """
        load, lane = self._admission.load, self.context.lane
        if self._invited is None:
            self._invited = load.promises[lane].redeem()
        if load.open:
            return  # as most requests find it
        if refusal := load.refusal(
            lane, self.context.deadline - time.monotonic(), invited=self._invited
        ):
            raise self._refused(refusal)

    async def pay(self, tokens: int) -> Receipt | None:
        """Take tokens; None where there is nothing to take.

        Raises:
            Problem: `quota_exhausted`, `quota_unavailable`.
        """
        if (account := self.caller.account) is None or not tokens:
            return None
        debit, standing = await self._admission.quota.take(*account, tokens)
        self.standing = standing if standing.certain else None
        if debit.receipt is None:
            raise _exhausted(tokens, standing.tokens, debit.again_ms)
        return debit.receipt

    async def look_up_standing(self) -> Standing | None:
        """How the caller stands; None where its tokens are not counted.

        Raises:
            Problem: `quota_unavailable`.
        """
        if account := self.caller.account:
            self.standing = await self._admission.quota.standing(*account)
        return self.standing

    def _too_late(self) -> Problem:
        """The problem of a request that was ended before it was done."""
        if self._refusal:
            return self._refused(self._refusal)
        longest_s = self._admission.timeout_s
        allowed_s = min(self._wanted_s, longest_s)
        problem = Problem(
            "deadline_exceeded",
            f"The request was not done within {allowed_s:g} seconds.",
            limit=allowed_s,
        )
        if self._wanted_s > longest_s:
            problem.extra["setting"] = "EMBER_REQUEST_TIMEOUT_S"
        return problem

    def _give_up(self, refusal: Refusal) -> None:
        """Wait no longer, as the deadline would pass meanwhile."""
        if self._refusal is None:
            self._refusal = refusal
            self.timer.reschedule(asyncio.get_running_loop().time())

    def _refused(self, refusal: Refusal) -> Problem:
        """The problem of a refusal, with the moment at which there will be room."""
        load, lane = self._admission.load, self.context.lane
        again_s = load.promises[lane].make(refusal.again_s)
        if refusal.late:
            return RetryLaterError(
                "overloaded",
                f"The wait is {refusal.wait_s:.1f} seconds; the deadline would pass meanwhile.",
                again_s,
                lane=str(lane),
            )
        return RetryLaterError(
            "overloaded",
            f"{load.limit} requests or more are waiting already.",
            again_s,
            lane=str(lane),
            limit=load.limit,
            setting="EMBER_QUEUE_LIMIT",
        )

    def _degrade(self, possible: Collection[Degradation]) -> None:
        """Have it served less well, or not at all, while the wait is long and the policy says so.

        Raises:
            Problem: `overloaded`.
        """
        if not (taken := self._admission.degradations()):
            return
        if Degradation.REFUSE_BULK in taken and self.context.lane is Lane.BULK:
            raise RetryLaterError(
                "overloaded",
                "The lane `bulk` is closed while others have to wait.",
                CALM_S,
                lane=str(Lane.BULK),
            )
        self.degradations = tuple(each for each in taken if each in possible)
        self.context.quick_search = Degradation.QUICK_SEARCH in self.degradations
        self.context.skip_enhancer = Degradation.NO_ENHANCER in self.degradations
        self.context.smallest_boost = Degradation.SMALLER_BOOST in self.degradations


class PaidWork:
    """Work that was paid for, as an async context manager: from the price to its end."""

    __slots__ = ("_in_flight", "_possible", "_receipt", "_request", "_tokens")

    def __init__(
        self, request: AdmittedRequest, tokens: int, possible: Collection[Degradation]
    ) -> None:
        self._request, self._tokens, self._possible = request, tokens, possible

    async def __aenter__(self) -> None:
        self._receipt = await self._request.start(self._tokens, self._possible)
        self._in_flight = self._request.enter()

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._in_flight.__exit__(kind, *error)
        self._request.end(self._receipt, failed=kind is not None)


def _exhausted(tokens: int, left: int, again_ms: int | None) -> Problem:
    """The problem of a price that cannot be paid; `again_ms` is None when it never can."""
    if again_ms is None:
        return Problem(
            "quota_exhausted",
            f"This takes {tokens} tokens at once, which is more than this tier ever has.",
            hint="Send a smaller photo, or ask for another tier.",
            value=tokens,
            limit=left,
        )
    return Problem(
        "quota_exhausted",
        f"This takes {tokens} tokens, and {left} are there.",
        headers=retry_after(again_ms / 1e3),
        value=tokens,
        limit=left,
    )
