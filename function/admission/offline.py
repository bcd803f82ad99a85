"""Accounts as they were last seen, for while their store is away.

What is used meanwhile is counted against them by each process for itself, and is owed to the store.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from function.admission import account as accounts
from function.admission.account import CURRENT, Account, Receipt

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.admission.account import Allowance, Debit

_MOST = 10_000
"""How many accounts are remembered; of more, those that were seen longest ago are forgotten."""


@dataclass(slots=True)
class Owed:
    """What one subject has used that its store does not know of.

    Attributes:
        allowance: what the subject's tier gives.
        ends: when the period ends in which it was used, in milliseconds of the store's clock.
        allowed: tokens of the allowance.
        granted: tokens that were granted.
        key: so that it is settled once.
        sealed: whether it may have been settled already, so that nothing may be added or taken off.
    """

    allowance: Allowance
    ends: int = 0
    allowed: int = 0
    granted: int = 0
    key: str = field(default_factory=lambda: secrets.token_hex(8))
    sealed: bool = False

    def tokens(self, now: int) -> int:
        """How many still count: those of an allowance do until its period is over."""
        return self.granted + (self.allowed if now < self.ends else 0)


class OfflineAccounts:
    """Decides about tokens without their store.

    Args:
        clock: milliseconds.
    """

    def __init__(self, clock: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000) -> None:
        self._clock = clock
        self._ahead = 0  # by how much the store's clock is
        self._seen: OrderedDict[str, Account] = OrderedDict()
        self._owed: dict[str, list[Owed]] = {}

    @property
    def debtors(self) -> list[str]:
        """The subjects that owe something."""
        return list(self._owed)

    @property
    def now(self) -> int:
        """The time of the store's clock, as far as it is known."""
        return self._clock() + self._ahead

    def saw(self, subject: str, account: Account, now: int) -> None:
        """Remember an account as its store had it at that time of the store's clock."""
        self._ahead = now - self._clock()
        self._seen[subject] = account
        self._seen.move_to_end(subject)
        if len(self._seen) > _MOST:
            self._seen.popitem(last=False)

    def take(self, subject: str, allowance: Allowance, tokens: int) -> tuple[Debit, int]:
        """Take tokens, all or none, of what was there when the account was last seen.

        Also the time, in milliseconds of the store's clock.
        """
        now = self.now
        debit = accounts.take(self._account(subject, allowance, now), allowance, tokens, now)
        if (receipt := debit.receipt) is None:
            return debit, now
        owed = self._open(subject, allowance)
        owed.allowed, owed.granted = owed.allowed + receipt.allowed, owed.granted + receipt.granted
        owed.ends = max(owed.ends, receipt.ends)
        return replace(debit, receipt=Receipt(tokens, 0, CURRENT, CURRENT)), now

    def give_back(self, subject: str, tokens: int) -> int:
        """Strike out what is owed; how many tokens the store has to give back itself."""
        for owed in self._owed.get(subject, ()):
            if not owed.sealed:
                granted = min(tokens, owed.granted)
                allowed = min(tokens - granted, owed.allowed)
                owed.granted, owed.allowed = owed.granted - granted, owed.allowed - allowed
                tokens -= granted + allowed
        return tokens

    def owed(self, subject: str) -> list[Owed]:
        """What a subject owes; what does not count any more is struck out."""
        now, found = self.now, self._owed.get(subject, [])
        for each in list(found):
            if not each.tokens(now):
                self.settled(subject, each)
        return list(found)

    def settled(self, subject: str, owed: Owed) -> None:
        """Strike out what the store knows of now."""
        found = self._owed.get(subject, [])
        if owed in found:
            found.remove(owed)
        if not found:
            self._owed.pop(subject, None)

    def _account(self, subject: str, allowance: Allowance, now: int) -> Account:
        account = self._seen.get(subject, Account()).at(now)
        for owed in self._owed.get(subject, ()):
            if tokens := owed.tokens(now):
                begun = account.ends
                account = accounts.charge(account, allowance, tokens, now)
                account = replace(account, ends=begun or owed.ends or account.ends)
        return account

    def _open(self, subject: str, allowance: Allowance) -> Owed:
        """Where what is used now is added."""
        found = self._owed.setdefault(subject, [])
        if not found or found[-1].sealed:
            found.append(Owed(allowance))
        return found[-1]
