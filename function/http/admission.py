"""Admission over HTTP: reads what headers say of a request, and writes what they say of its quota.

What is decided is decided in `function.admission`.
"""

from __future__ import annotations

import math
import re
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import hdrs

from function.admission.caller import RejectedError
from function.http.edge import exchange_of
from function.problems import Problem
from function.request_context import Lane, current

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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

    @asynccontextmanager
    async def admit(
        self, request: Request, *, waits: bool = True
    ) -> AsyncIterator[AdmittedRequest]:
        """Let a request in while the body runs, and no longer than to its deadline.

        Args:
            request: the request.
            waits: whether it will wait for a slot.

        Raises:
            Problem: `bad_request` for headers that make no sense, what `identify` raises,
                `forbidden` for a lane that is not the caller's, `overloaded`, `deadline_exceeded`.
        """
        began, exchange = time.monotonic(), exchange_of(request)
        caller = await self.identify(request)
        exchange.subject = caller.subject
        wanted_s, lane = _wanted_s(request), _lane(request, caller)
        async with self.admission.admit(
            caller, lane, began=began, wanted_s=wanted_s, waits=waits
        ) as admitted:
            try:
                yield admitted
            finally:
                exchange.degraded = admitted.degradations
                if admitted.standing:
                    exchange.headers |= _rate_limit(caller, admitted.standing)

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
