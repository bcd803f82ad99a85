"""One subject's tokens, as pure arithmetic: what a debit takes and what a refund gives back.

Of an allowance, so many tokens may be used in each period, which begins with the first token that
is used. Granted tokens come on top, stay until they are used, and are used after the allowance. An
hourly cap counts both. `account.lua` does the same inside Redis.

An example, with 10 tokens in each hour: at 9:00 somebody takes 8, so that the period ends at 10:00,
and at 9:10 is granted 5. At 9:20 a debit of 4 takes the 2 that are left and 2 granted ones. At 9:30
one of 6 is refused until 10:00, as only 3 granted ones are left. If the debit of 4 is given back at
10:05, its 2 granted tokens come back; the other 2 do not, as their period is over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

HOUR_MS = 3_600_000

CURRENT = -1
"""In a receipt: whatever period runs when it is given back."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a tier gives: `tokens` in each period of `period_ms`, and at most `cap` in an hour."""

    tokens: int
    period_ms: int = HOUR_MS
    cap: int | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """The state; times are milliseconds, 0 for a period that has not begun.

    Attributes:
        used: of the allowance, in the period that ends at `ends`.
        granted: tokens that were granted and are not used.
        spent: all tokens of the hour that ends at `hour`.
    """

    used: int = 0
    ends: int = 0
    granted: int = 0
    spent: int = 0
    hour: int = 0

    def at(self, now: int) -> Account:
        """The same, with periods that are over removed."""
        current = self
        if now >= self.ends:
            current = replace(current, used=0, ends=0)
        if now >= self.hour:
            current = replace(current, spent=0, hour=0)
        return current

    @property
    def blank(self) -> bool:
        """Whether it is as one that was never used."""
        return self == Account()

    def left(self, allowance: Allowance) -> int:
        """Tokens of the allowance that are left in its period."""
        return max(0, allowance.tokens - self.used)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a debit took, and of which periods, so that it can be given back."""

    allowed: int
    granted: int
    ends: int
    hour: int

    @property
    def tokens(self) -> int:
        """All of it."""
        return self.allowed + self.granted

    def part(self, tokens: int) -> Receipt:
        """So many of these tokens, the granted ones first."""
        granted = min(tokens, self.granted)
        return replace(self, allowed=min(tokens - granted, self.allowed), granted=granted)


@dataclass(frozen=True, slots=True)
class Debit:
    """The outcome of a debit.

    Attributes:
        account: the state after it.
        receipt: what was taken; None when there is not enough.
        again_ms: after how many milliseconds there will be enough, when there is not; None for
            never.
    """

    account: Account
    receipt: Receipt | None
    again_ms: int | None = 0


def take(account: Account, allowance: Allowance, tokens: int, now: int) -> Debit:
    """Take tokens, all of them or none.

    Args:
        account: the state before.
        allowance: what the subject's tier gives.
        tokens: how many, 1 at least.
        now: milliseconds.
    """
    account = account.at(now)
    left, cap = account.left(allowance), allowance.cap
    if (cap is not None and tokens > cap) or tokens > allowance.tokens + account.granted:
        return Debit(account, None, None)
    again = [0]
    if cap is not None and account.spent + tokens > cap:
        again.append(account.hour - now)
    if tokens > left + account.granted:
        again.append(account.ends - now)
    if len(again) > 1:
        return Debit(account, None, max(again))
    allowed = min(left, tokens)
    after = Account(
        used=account.used + allowed,
        ends=account.ends or (now + allowance.period_ms if allowed else 0),
        granted=account.granted - (tokens - allowed),
        spent=account.spent + tokens,
        hour=account.hour or now + HOUR_MS,
    )
    return Debit(after, Receipt(allowed, tokens - allowed, after.ends, after.hour))


def charge(account: Account, allowance: Allowance, tokens: int, now: int) -> Account:
    """Take tokens that are used already: what is missing is owed until the period is over.

    Args:
        account: the state before.
        allowance: what the subject's tier gives.
        tokens: how many, 1 at least.
        now: milliseconds.
    """
    account = account.at(now)
    granted = min(account.granted, max(0, tokens - account.left(allowance)))
    return Account(
        used=account.used + tokens - granted,
        ends=account.ends or now + allowance.period_ms,
        granted=account.granted - granted,
        spent=account.spent + tokens,
        hour=account.hour or now + HOUR_MS,
    )


def give_back(account: Account, receipt: Receipt, now: int) -> Account:
    """Undo a debit, as far as its periods are not over: granted tokens come back in any case."""
    account = account.at(now)
    allowed = receipt.allowed if receipt.ends in {account.ends, CURRENT} else 0
    spent = receipt.tokens if receipt.hour in {account.hour, CURRENT} else 0
    return replace(
        account,
        used=max(0, account.used - allowed),
        granted=account.granted + receipt.granted,
        spent=max(0, account.spent - spent),
    )


def grant(account: Account, tokens: int, now: int) -> Account:
    """Add granted tokens."""
    account = account.at(now)
    return replace(account, granted=account.granted + tokens)
