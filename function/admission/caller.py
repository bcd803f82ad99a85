"""Who calls, and how that is known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from function.problems import Problem
from function.request_context import Lane

if TYPE_CHECKING:
    from function.admission.policy import Policy, Tier

SUBJECT = re.compile(r"[!-~]{1,255}")
"""What a subject may be: visible ASCII without spaces."""

EMAIL = "email:"
"""What settings write before the address of a caller, in place of its subject."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, as the credentials say.

    Attributes:
        subject: whose tokens are spent.
        tier: the name of the tier; None for the policy's usual one.
        lane: the most urgent lane, where it is not the tier's.
        email: the address, where the issuer has verified it.
    """

    subject: str
    tier: str | None = None
    lane: str | None = None
    email: str | None = None

    def within(self, policy: Policy) -> tuple[Tier, Lane]:
        """The tier, and the most urgent lane.

        Raises:
            Problem: `forbidden`, when the policy knows no such tier, or there is no such lane.
        """
        tier = policy.tiers.get(self.tier) if self.tier is not None else policy.usual
        if tier is None:
            raise Problem("forbidden", f"There is no tier `{self.tier}` here.")
        try:
            return tier, Lane(self.lane or tier.highest)
        except ValueError:
            raise Problem("forbidden", f"There is no lane `{self.lane}` here.") from None


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
    """Credentials are not good; the text says why, and may be told to the client."""
