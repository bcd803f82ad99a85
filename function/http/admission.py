"""The door: lets a request in, with its lane and its deadline, or says why not and when to return.

What is decided here is decided in `function.admission`; this gives it headers and takes problems.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import hdrs

from function.admission.byte_budget import OverBudgetError
from function.admission.caller import EMAIL, RejectedError
from function.admission.degradation import CALM_S, Degradation
from function.http.edge import exchange_of
from function.problems import Problem
from function.request_context import Lane, RequestContext, current
from function.runtime.scheduling.permits import Abandoned
from function.storage.fair_semaphore import FairSemaphore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import TracebackType
    from typing import Self

    from aiohttp.web import Request

    from function.admission.account import Allowance, Debit, Receipt
    from function.admission.load import Refusal
    from function.admission.parts import AdmissionParts
    from function.admission.policy import Prices, Tier
    from function.admission.quota import Standing

LANE = "Ember-Lane"
TIMEOUT = "Request-Timeout"

_FETCHING = 1024, 16
_TICK_S = 0.002
"""Timers of event loops count in milliseconds, so that one may come a little early."""
_LOOKING = (Degradation.QUICK_SEARCH,)
_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


@dataclass(frozen=True, slots=True)
class Admission:
    """Where requests come in.

    Attributes:
        parts: what decides.
        timeout_s: how long a request may take that does not ask for less.
        fetching: how many URIs are fetched at once, and for one caller.
    """

    parts: AdmissionParts
    timeout_s: float
    fetching: FairSemaphore = field(default_factory=lambda: FairSemaphore(*_FETCHING))

    def visit(self, request: Request, *, waits: bool = True) -> AdmittedRequest:
        """Let a request in while the body of `async with` runs; see `AdmittedRequest`.

        Args:
            request: the request.
            waits: whether it will wait for a place.
        """
        return AdmittedRequest(self, request, waits=waits)

    async def identify(self, request: Request) -> RequestCaller:
        """Who sends a request.

        Raises:
            Problem: `unauthenticated`, `auth_unavailable`; `forbidden` for a tier that the policy
                does not know.
        """
        policy, authority = self.parts.policy, self.parts.authority
        if authority is None:
            return RequestCaller(None, policy.anonymous, policy.anonymous.highest)
        scheme, _, credentials = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        if scheme.lower() != "bearer":
            raise _unauthenticated("There is no `Authorization: Bearer …`.")
        if not credentials.isascii():
            raise _unauthenticated("Keys and tokens are ASCII.", error="invalid_token")
        try:
            caller = await authority.caller(credentials.strip())
        except RejectedError as rejected:
            raise _unauthenticated(str(rejected), error="invalid_token") from None
        return RequestCaller(caller.subject, *caller.within(policy), caller.email)

    def body(self) -> tuple[Callable[[int], None], Callable[[], None]]:
        """Two functions: one takes so many more bytes for a body, the other gives all of them back.

        The first one raises `Problem` `overloaded`.
        """
        lane = current.get().lane
        held = self.parts.room.body(lane)

        def take(size: int) -> None:
            try:
                held.take(size)
            except OverBudgetError:
                raise overloaded(
                    "The bodies of the requests at hand leave no room for another.",
                    self.parts.queue.wait_s(lane),
                    limit=self.parts.room.size,
                    setting="EMBER_MAX_BODIES_BYTES",
                ) from None

        return take, held.release


@dataclass(frozen=True, slots=True)
class RequestCaller:
    """Who sends a request.

    Attributes:
        subject: whose tokens are spent; None where nobody says who he is.
        tier: what he may have.
        highest: the most urgent lane.
        email: his address, if the issuer says that it is his.
    """

    subject: str | None
    tier: Tier
    highest: Lane
    email: str | None = None

    @property
    def names(self) -> set[str]:
        """What settings may call him; a subject that looks like an address is none."""
        found = {f"{EMAIL}{self.email.lower()}"} if self.email else set()
        if self.subject is not None and not self.subject.startswith(EMAIL):
            found.add(self.subject)
        return found

    @property
    def allowance(self) -> Allowance | None:
        """What the tier gives; None where tokens are not counted."""
        return None if self.subject is None else self.tier.allowance


class AdmittedRequest:
    """One request, let in while the body of `async with` runs, and no longer than to its deadline.

    Entering and leaving it raise `Problem`: `bad_request` for headers that say nothing, what
    `Admission.identify` raises, `forbidden` for a lane that is not the caller's, `overloaded`, and
    `deadline_exceeded`.

    Attributes:
        door: where it came in.
        visitor: who sends it.
        context: its lane and its deadline.
        exchange: what is known about it.
    """

    __slots__ = (
        "_before",
        "_clock",
        "_request",
        "_told",
        "_vain",
        "_waits",
        "context",
        "door",
        "exchange",
        "visitor",
    )

    def __init__(self, door: Admission, request: Request, *, waits: bool) -> None:
        self.door, self._request, self._waits = door, request, waits
        self._told: bool | None = None  # whether it was told to come now
        self._vain: Refusal | None = None  # why it waits no longer

    async def __aenter__(self) -> Self:
        began = time.monotonic()
        request, door = self._request, self.door
        self.exchange = exchange_of(request)
        self.visitor = await door.identify(request)
        self.exchange.subject = self.visitor.subject
        allowed_s = min(_wished_s(request), door.timeout_s)
        self.context = RequestContext(_lane(request, self.visitor), began + allowed_s)
        if self._waits:
            self.check()  # once more when the body is there, but why send it in vain
        self._clock = asyncio.timeout(self.context.deadline - time.monotonic())
        await self._clock.__aenter__()
        self._before = current.set(self.context)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.context.abandoned = True
        current.reset(self._before)
        try:
            await self._clock.__aexit__(kind, error, where)
        except TimeoutError:
            raise self._late() from None
        # What waits goes by the same deadline, and may see it pass first.
        if isinstance(error, Abandoned) and time.monotonic() + _TICK_S >= self.context.deadline:
            raise self._late() from None

    def _late(self) -> Problem:
        if self._vain:
            return self._refused(self._vain)
        return _late(_wished_s(self._request), self.door.timeout_s)

    def check(self) -> None:
        """See that the request may wait for a place, and can have one in time.

        Raises:
            Problem: `overloaded`.
        """
        queue, lane = self.door.parts.queue, self.context.lane
        if self._told is None:
            self._told = queue.promises[lane].redeem()
        if queue.open:
            return  # as most requests find it
        left_s = self.context.deadline - time.monotonic()
        if refusal := queue.refusal(lane, left_s, told=self._told):
            raise self._refused(refusal)

    def give_up(self, refusal: Refusal) -> None:
        """Wait no longer, as the deadline would pass meanwhile."""
        if self._vain is None:
            self._vain = refusal
            self._clock.reschedule(asyncio.get_running_loop().time())

    def _refused(self, refusal: Refusal) -> Problem:
        """The problem of a refusal, with the moment at which there will be room."""
        queue, lane = self.door.parts.queue, self.context.lane
        again_s = queue.promises[lane].make(refusal.again_s)
        if refusal.late:
            return overloaded(
                f"The wait is {refusal.wait_s:.1f} seconds; the deadline would pass meanwhile.",
                again_s,
                lane=str(lane),
            )
        return overloaded(
            f"{queue.limit} requests or more are waiting already.",
            again_s,
            lane=str(lane),
            limit=queue.limit,
            setting="EMBER_QUEUE_LIMIT",
        )

    @property
    def job_lane(self) -> Lane:
        """The lane of a job that the request makes: what it asks for, else what its tier says."""
        if LANE in self._request.headers or self.visitor.tier.jobs.before(self.context.lane):
            return self.context.lane
        return self.visitor.tier.jobs

    @property
    def prices(self) -> Prices:
        """The price list."""
        return self.door.parts.policy.prices

    @property
    def pays(self) -> bool:
        """Whether the visitor's tokens are counted."""
        return self.visitor.allowance is not None

    def work(self, tokens: int, saves: Collection[Degradation] = _LOOKING) -> _Work:
        """Take the price, and let the body, a call of the service, wait for a place.

        How long it held it is learned. The price is given back when it ends without having had one.
        Entering raises `Problem`: `overloaded`, `quota_exhausted`, `quota_unavailable`.

        Args:
            tokens: the price.
            saves: the rungs on which this would be done less well.
        """
        return _Work(self, tokens, saves)

    def climb(self, saves: Collection[Degradation]) -> None:
        """Serve less well, or not at all, while the queue is long and the operator wants that.

        Args:
            saves: the rungs on which what is asked for is done less well.
        """
        if not (rungs := self.door.parts.look()):
            return
        if Degradation.REFUSE_BULK in rungs and self.context.lane is Lane.BULK:
            raise overloaded(
                "The lane `bulk` is closed while others have to wait.", CALM_S, lane=str(Lane.BULK)
            )
        taken = tuple(rung for rung in rungs if rung in saves)
        self.context.quick_search = Degradation.QUICK_SEARCH in taken
        self.context.skip_enhancer = Degradation.NO_ENHANCER in taken
        self.context.smallest_boost = Degradation.SMALLER_BOOST in taken
        self.exchange.degraded = taken

    def tell(self, standing: Standing) -> None:
        """Put how the visitor stands into the headers of the answer.

        They are those of draft-ietf-httpapi-ratelimit-headers-10.
        """
        name, period_s = self.visitor.tier.name, self.visitor.tier.refill_s
        left, refill_s = standing.tokens, standing.refill_s or period_s
        headers = self.exchange.headers
        headers["RateLimit-Policy"] = f'"{name}";q={standing.allowance.tokens};w={period_s}'
        headers["RateLimit"] = f'"{name}";r={left};t={refill_s}'

    async def pay(self, tokens: int) -> Receipt | None:
        """Take tokens; None where there is nothing to take."""
        subject, allowance = self.visitor.subject, self.visitor.allowance
        if subject is None or allowance is None or not tokens:
            return None
        debit, standing = await self.door.parts.quota.take(subject, allowance, tokens)
        if standing.certain:
            self.tell(standing)
        if debit.receipt is None:
            raise _exhausted(debit, standing, tokens)
        return debit.receipt


class _Work:
    """See `AdmittedRequest.work`."""

    __slots__ = ("_began", "_receipt", "_saves", "_tokens", "_visit", "_waiting")

    def __init__(self, visit: AdmittedRequest, tokens: int, saves: Collection[Degradation]) -> None:
        self._visit, self._tokens, self._saves = visit, tokens, saves

    async def __aenter__(self) -> None:
        visit = self._visit
        visit.check()
        visit.climb(self._saves)
        self._receipt = await visit.pay(self._tokens)
        visit.context.max_faces = visit.prices.covers(self._tokens)
        if self._receipt:
            try:
                visit.check()  # others may have come meanwhile
            except Problem:
                self._refund()
                raise
        queue = visit.door.parts.queue
        queue.enter(visit.context.lane)
        self._waiting = queue.follow(visit.context, visit.give_up)
        queue.renew()
        self._began = time.perf_counter()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        parts = self._visit.door.parts
        parts.queue.leave(self._visit.context.lane)
        parts.queue.forget(self._waiting)
        parts.look()
        if kind is None:
            waited_ms = self._visit.exchange.trace.of("queue", "load")
            parts.queue.learn(time.perf_counter() - self._began - waited_ms / 1e3)
            parts.queue.renew()
        elif not self._visit.context.started:
            self._refund()

    def _refund(self) -> None:
        subject = self._visit.visitor.subject
        if self._receipt and subject is not None:
            self._visit.door.parts.quota.refund(subject, self._receipt)


def _unauthenticated(detail: str, error: str = "") -> Problem:
    challenge = 'Bearer realm="ember"' + (f', error="{error}"' if error else "")
    return Problem("unauthenticated", detail, headers={"WWW-Authenticate": challenge})


def _lane(request: Request, visitor: RequestCaller) -> Lane:
    """The lane that a request asks for; without a wish, the tier's own or what is below."""
    highest = visitor.highest
    if (named := request.headers.get(LANE)) is None:
        return visitor.tier.lane if visitor.tier.highest is highest else highest
    allowed = [lane for lane in Lane if not lane.before(highest)]
    if named not in list(Lane):
        raise Problem("bad_request", f"{LANE} is one of {', '.join(Lane)}.", allowed=allowed)
    if named not in allowed:
        raise Problem("forbidden", f"The lane `{named}` is above yours.", allowed=allowed)
    return Lane(named)


def _wished_s(request: Request) -> float:
    """How long the client wants to wait at most."""
    sent = request.headers.get(TIMEOUT)
    if sent is None:
        return math.inf
    if not _SECONDS.fullmatch(sent) or not (seconds := float(sent)):
        raise Problem("bad_request", f"{TIMEOUT} is a number of seconds above 0, like 2.5.")
    return seconds


def _late(wished_s: float, timeout_s: float) -> Problem:
    allowed_s = min(wished_s, timeout_s)
    problem = Problem(
        "deadline_exceeded",
        f"The request was not done within {allowed_s:g} seconds.",
        limit=allowed_s,
    )
    if wished_s > timeout_s:
        problem.extra["setting"] = "EMBER_REQUEST_TIMEOUT_S"
    return problem


def _exhausted(debit: Debit, standing: Standing, tokens: int) -> Problem:
    if debit.again_ms is None:
        problem = Problem(
            "quota_exhausted",
            f"This takes {tokens} tokens at once, which is more than this tier ever has.",
        )
        problem.extra["hint"] = "Send a smaller photo, or ask for another tier."
    else:
        problem = Problem(
            "quota_exhausted",
            f"This takes {tokens} tokens, and {standing.tokens} are there.",
            headers=retry_after(debit.again_ms / 1e3),
        )
    problem.extra |= {"value": tokens, "limit": standing.tokens}
    return problem


def overloaded(detail: str, again_s: float, **extra: object) -> Problem:
    """The problem of what there is no room for now."""
    problem = Problem("overloaded", detail, headers=retry_after(again_s))
    problem.extra.update(extra)
    return problem


def retry_after(seconds: float) -> dict[str, str]:
    """The header; whole seconds, at least one."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}
