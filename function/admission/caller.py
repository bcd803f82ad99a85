"""Who calls, and how that is known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from function.problems import Problem
from function.request_context import Lane

if TYPE_CHECKING:
    from function.admission.account import Allowance
    from function.admission.policy import Policy, Tier

SUBJECT = re.compile(r"[!-~]{1,255}")
"""What a subject may be: visible ASCII without spaces."""

EMAIL = "email:"
"""What settings write before the e-mail address of a caller, in place of its subject."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, as the credentials say.

    Attributes:
        subject: the account of its tokens.
        tier: the name of the tier; None for the policy's usual one.
        lane: the most urgent lane, where it is not the tier's.
        email: the address, where the issuer has verified it.
    """

    subject: str
    tier: str | None = None
    lane: str | None = None
    email: str | None = None

    def within(self, policy: Policy) -> RequestCaller:
        """The same, with what the policy lets it have.

        Raises:
            Problem: `forbidden`, when the policy knows no such tier, or there is no such lane.
        """
        tier = policy.tiers.get(self.tier) if self.tier is not None else policy.usual
        if tier is None:
            raise Problem("forbidden", f"There is no tier `{self.tier}` here.")
        try:
            highest = Lane(self.lane or tier.highest)
        except ValueError:
            raise Problem("forbidden", f"There is no lane `{self.lane}` here.") from None
        return RequestCaller(self.subject, tier, highest, self.email)


@dataclass(frozen=True, slots=True)
class RequestCaller:
    """Who sends a request, and what it may have.

    Attributes:
        subject: the account of its tokens; None where nobody says who he is.
        tier: what it may have.
        highest: the most urgent lane.
        email: the address, if the issuer says that it is the caller's.
    """

    subject: str | None
    tier: Tier
    highest: Lane
    email: str | None = None

    @property
    def lanes(self) -> list[Lane]:
        """The lanes that its requests may ask for."""
        return [lane for lane in Lane if not lane.before(self.highest)]

    @property
    def usual_lane(self) -> Lane:
        """The lane of a request that asks for none: the tier's own, or the highest below that."""
        return self.tier.lane if self.tier.highest is self.highest else self.highest

    @property
    def names(self) -> set[str]:
        """What settings may call it; a subject that looks like an address is none."""
        found = {f"{EMAIL}{self.email.lower()}"} if self.email else set()
        if self.subject is not None and not self.subject.startswith(EMAIL):
            found.add(self.subject)
        return found

    @property
    def account(self) -> tuple[str, Allowance] | None:
        """Its subject, and what its tier gives; None where its tokens are not counted."""
        allowance = self.tier.allowance
        return None if self.subject is None or allowance is None else (self.subject, allowance)


class Authority(Protocol):
    """Knows callers by their credentials."""

    async def caller(self, credentials: str) -> Caller:
        """Who calls.

        Raises:
            RejectedError: the credentials are not good.
            Problem: `auth_unavailable`.
        """
        ...

    async def prepare(self) -> None:
        """Get ready for the first caller."""
        ...


class RejectedError(Exception):
    """Credentials are not good; the text says why, and may be sent to the client."""
