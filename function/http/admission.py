"""Admission over HTTP: reads what headers say of a request, and writes what they say of its quota.

What is decided is decided in `function.admission`.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import hdrs

from function.admission.caller import RejectedError
from function.http.edge import exchange_of
from function.problems import Problem
from function.request_context import Entry, Lane, Sender, current

if TYPE_CHECKING:
    from types import TracebackType

    from aiohttp.web import Request

    from function.admission.admission import Admission
    from function.admission.admitted import AdmittedRequest
    from function.admission.byte_budget import BodyBytes
    from function.admission.caller import RequestCaller
    from function.admission.quota import Standing

LANE = "Ember-Lane"
TIMEOUT = "Request-Timeout"

_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


@dataclass(frozen=True, slots=True)
class HttpAdmission:
    """Where requests come in.

    Attributes:
        admission: decides.
    """

    admission: Admission

    def admit(self, request: Request, *, waits: bool = True) -> AdmittedExchange:
        """Let a request in while the body of `async with` runs, and no longer than to its deadline.

        Entering and leaving it raise `Problem`: `bad_request` for headers that make no sense, what
        `identify` raises, `forbidden` for a lane that is not the caller's, `overloaded`,
        `deadline_exceeded`.

        Args:
            request: the request.
            waits: whether it will wait for a slot.
        """
        return AdmittedExchange(self, request, waits=waits)

    async def identify(self, request: Request) -> RequestCaller:
        """Who sends a request.

        Raises:
            Problem: `unauthenticated`, `auth_unavailable`; `forbidden` for a tier that the policy
                does not know.
        """
        scheme, _, credentials = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        if not self.anonymous:
            if scheme.lower() != "bearer":
                raise _unauthenticated("There is no `Authorization: Bearer …`.")
            if not credentials.isascii():
                raise _unauthenticated("Keys and tokens are ASCII.", error="invalid_token")
        try:
            return await self.admission.identify(credentials.strip())
        except RejectedError as rejected:
            raise _unauthenticated(str(rejected), error="invalid_token") from None

    @property
    def anonymous(self) -> bool:
        """Whether nobody has to say who he is."""
        return self.admission.authority is None

    def body(self) -> BodyBytes:
        """The bytes of a body of the running request, of which there are none yet."""
        return self.admission.bodies.body(current.get().lane)


class AdmittedExchange:
    """A request over HTTP that is let in; its answer says how it was served."""

    __slots__ = ("_admission", "_admitted", "_exchange", "_request", "_waits")

    def __init__(self, admission: HttpAdmission, request: Request, *, waits: bool) -> None:
        self._admission, self._request, self._waits = admission, request, waits

    async def __aenter__(self) -> AdmittedRequest:
        began, request = time.monotonic(), self._request
        self._exchange = exchange_of(request)
        caller = await self._admission.identify(request)
        self._exchange.subject = caller.subject
        wanted_s, lane = _wanted_s(request), _lane(request, caller)
        self._admitted = self._admission.admission.admit(
            caller, lane, began=began, wanted_s=wanted_s, waits=self._waits
        )
        self._admitted.context.sender = Sender(
            Entry.HTTP, self._exchange.request_id, caller.subject, caller.tier.name
        )
        return await self._admitted.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        admitted = self._admitted
        self._exchange.degraded = admitted.degradations
        if admitted.standing:
            self._exchange.headers |= _rate_limit(admitted.caller, admitted.standing)
        await admitted.__aexit__(kind, error, where)


def _unauthenticated(detail: str, error: str = "") -> Problem:
    challenge = 'Bearer realm="ember"' + (f', error="{error}"' if error else "")
    return Problem("unauthenticated", detail, headers={"WWW-Authenticate": challenge})


def _lane(request: Request, caller: RequestCaller) -> Lane | None:
    """The lane that a request asks for; None where it asks for none."""
    if (named := request.headers.get(LANE)) is None:
        return None
    if named not in list(Lane):
        detail = f"{LANE} is one of {', '.join(Lane)}."
        raise Problem("bad_request", detail, allowed=caller.lanes)
    if named not in caller.lanes:
        raise Problem("forbidden", f"The lane `{named}` is above yours.", allowed=caller.lanes)
    return Lane(named)


def _wanted_s(request: Request) -> float:
    """How many seconds the client wants to wait at most."""
    sent = request.headers.get(TIMEOUT)
    if sent is None:
        return math.inf
    if not _SECONDS.fullmatch(sent) or not (seconds := float(sent)):
        raise Problem("bad_request", f"{TIMEOUT} is a number of seconds above 0, like 2.5.")
    return seconds


def _rate_limit(caller: RequestCaller, standing: Standing) -> dict[str, str]:
    """How the caller stands, in the headers of draft-ietf-httpapi-ratelimit-headers-10."""
    name, period_s = caller.tier.name, caller.tier.refill_s
    left, refill_s = standing.tokens, standing.refill_s or period_s
    return {
        "RateLimit-Policy": f'"{name}";q={standing.allowance.tokens};w={period_s}',
        "RateLimit": f'"{name}";r={left};t={refill_s}',
    }
