"""The door: lets a request in, with its lane and its deadline, or says why not and when to return.

What is decided here is decided in `function.admission`; this gives it headers and takes problems.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import hdrs

from function.admission.caller import RejectedError
from function.admission.room import NoRoomError
from function.http.edge import exchange_of
from function.problems import Problem
from function.turn import Lane, Turn, current

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiohttp.web import Request

    from function.admission.caller import Authority
    from function.admission.policy import Policy, Tier
    from function.admission.queue import Queue
    from function.admission.room import Room
    from function.trace import Trace

LANE = "Ember-Lane"
TIMEOUT = "Request-Timeout"

_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


@dataclass(frozen=True, slots=True)
class Door:
    """Where requests come in.

    Attributes:
        queue: knows how long a request would wait.
        room: for bodies.
        timeout_s: how long a request may take that does not ask for less.
        policy: what callers may have.
        authority: knows them; None where nobody has to say who he is.
    """

    queue: Queue
    room: Room
    timeout_s: float
    policy: Policy
    authority: Authority | None = None

    @asynccontextmanager
    async def visit(self, request: Request) -> AsyncIterator[Visit]:
        """Let a request in while the body runs, no longer than to its deadline.

        Raises:
            Problem: `bad_request` for headers that say nothing; what `identify` raises; `forbidden`
                for a lane that is not the caller's; `overloaded`; `deadline_exceeded`.
        """
        began = time.monotonic()
        visitor = await self.identify(request)
        wished_s = _wished_s(request)
        allowed_s = min(wished_s, self.timeout_s)
        turn = Turn(_lane(request, visitor), began + allowed_s)
        visit = Visit(self, visitor, turn, exchange_of(request).trace)
        visit.check()  # once more when the body is there, but why send it in vain
        before = current.set(turn)
        try:
            async with asyncio.timeout(allowed_s) as clock:
                yield visit
        except TimeoutError:
            if not clock.expired():
                raise
            raise _late(allowed_s, asked=wished_s <= self.timeout_s) from None
        finally:
            turn.gone = True
            current.reset(before)

    async def identify(self, request: Request) -> Visitor:
        """Who sends a request.

        Raises:
            Problem: `unauthenticated`, `auth_unavailable`; `forbidden` for a tier that the policy
                does not know.
        """
        if self.authority is None:
            return Visitor(None, self.policy.anonymous, self.policy.anonymous.highest)
        scheme, _, credentials = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        if scheme.lower() != "bearer":
            raise _unauthenticated("There is no `Authorization: Bearer …`.")
        try:
            caller = await self.authority.caller(credentials.strip())
        except RejectedError as rejected:
            raise _unauthenticated(str(rejected), error="invalid_token") from None
        return Visitor(caller.subject, *caller.within(self.policy))

    @contextmanager
    def body(self) -> Iterator[Callable[[int], None]]:
        """See `Room.body`; what is given raises `Problem` `overloaded`."""
        lane = current.get().lane
        with self.room.body(lane) as take:

            def take_or_refuse(size: int) -> None:
                try:
                    take(size)
                except NoRoomError:
                    raise _overloaded(
                        "The bodies of the requests at hand leave no room for another.",
                        self.queue.load.wait_s(lane),
                        limit=self.room.size,
                        setting="EMBER_MAX_BODIES_BYTES",
                    ) from None

            yield take_or_refuse


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who sends a request: whose tokens are spent, if anybody's, the tier, the most urgent lane."""

    subject: str | None
    tier: Tier
    highest: Lane


@dataclass(frozen=True, slots=True)
class Visit:
    """One request that was let in."""

    door: Door
    visitor: Visitor
    turn: Turn
    trace: Trace

    def check(self) -> None:
        """See that the request may wait for a place, and can have one in time.

        Raises:
            Problem: `overloaded`.
        """
        queue, lane = self.door.queue, self.turn.lane
        if not (refusal := queue.refusal(lane, self.turn.deadline - time.monotonic())):
            return
        if refusal.late:
            raise _overloaded(
                f"The wait is {refusal.wait_s:.1f} seconds; the deadline would pass meanwhile.",
                refusal.again_s,
                lane=str(lane),
            )
        raise _overloaded(
            f"{queue.limit} requests or more are waiting already.",
            refusal.again_s,
            lane=str(lane),
            limit=queue.limit,
            setting="EMBER_QUEUE_LIMIT",
        )

    @contextmanager
    def work(self) -> Iterator[None]:
        """Let the body, a call of the service, wait for a place; learn how long it held it.

        Raises:
            Problem: `overloaded`.
        """
        self.check()
        began = time.perf_counter()
        with self.door.queue.enter(self.turn.lane):
            yield
        totals = self.trace.totals()
        waited_ms = totals.get("queue", 0.0) + totals.get("load", 0.0)
        self.door.queue.learn(time.perf_counter() - began - waited_ms / 1e3)


def _unauthenticated(detail: str, error: str = "") -> Problem:
    challenge = 'Bearer realm="ember"' + (f', error="{error}"' if error else "")
    return Problem("unauthenticated", detail, headers={"WWW-Authenticate": challenge})


def _lane(request: Request, visitor: Visitor) -> Lane:
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


def _late(allowed_s: float, *, asked: bool) -> Problem:
    problem = Problem(
        "deadline_exceeded",
        f"The request was not done within {allowed_s:g} seconds.",
        limit=allowed_s,
    )
    if not asked:
        problem.extra["setting"] = "EMBER_REQUEST_TIMEOUT_S"
    return problem


def _overloaded(detail: str, again_s: float, **extra: object) -> Problem:
    problem = Problem("overloaded", detail, headers=retry_after(again_s))
    problem.extra.update(extra)
    return problem


def retry_after(seconds: float) -> dict[str, str]:
    """The header; whole seconds, at least one."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}
