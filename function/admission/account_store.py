"""Where accounts are kept: what every store can do, and the one in memory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from function.admission import account as accounts
from function.admission.account import Account

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.admission.account import Allowance, Debit, Receipt

KEEP_MS = 30 * 86_400_000
"""How long a grant or a settlement is remembered, so that it is not made twice."""

AT_ONCE = 16
"""How many questions a store is asked at once, where it is not in this process."""

_SWEEP_MS = 60_000


@dataclass(frozen=True, slots=True)
class Balance:
    """An account at one moment of its store's clock, in milliseconds."""

    account: Account
    now: int


@dataclass(frozen=True, slots=True)
class Granted:
    """The outcome of a grant: `before` is what an earlier one with the same key gave, if any."""

    balance: Balance
    before: int | None


class StoreFullError(Exception):
    """The store has no room to write anything down."""


class AccountStore(Protocol):
    """Keeps accounts by subject. Every call may raise what its service raises.

    Attributes:
        instant: whether it answers without ever waiting.
    """

    instant: bool

    async def take(self, subject: str, allowance: Allowance, tokens: int) -> tuple[Debit, int]:
        """Take tokens, all or none; also the time of the store's clock, in milliseconds."""
        ...

    async def give_back(self, subject: str, receipt: Receipt) -> Balance:
        """Undo a debit, as far as its periods are not over; the account after that."""
        ...

    async def grant(self, subject: str, tokens: int, key: str) -> Granted:
        """Add tokens, once for each key."""
        ...

    async def settle(self, subject: str, allowance: Allowance, tokens: int, key: str) -> Balance:
        """Take what was used while the store could not be asked, once for each key.

        What is missing is owed until the period is over.
        """
        ...

    async def look(self, subject: str) -> Balance:
        """The account as it is."""
        ...

    async def close(self) -> None:
        """Close what it holds open."""
        ...


class InMemoryAccounts:
    """Keeps accounts in this process: right for one replica, and gone with it.

    Args:
        clock: milliseconds.
    """

    instant = True

    def __init__(self, clock: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000) -> None:
        self._clock = clock
        self._accounts: dict[str, Account] = {}
        self._marks: dict[tuple[str, str], tuple[int, int]] = {}
        self._sweep_at = 0

    def __len__(self) -> int:
        return len(self._accounts)

    async def take(self, subject: str, allowance: Allowance, tokens: int) -> tuple[Debit, int]:
        """Take tokens, all or none; also the time of the clock, in milliseconds."""
        now = self._now()
        debit = accounts.take(self._of(subject), allowance, tokens, now)
        self._accounts[subject] = debit.account
        return debit, now

    async def give_back(self, subject: str, receipt: Receipt) -> Balance:
        """Undo a debit; the account after that."""
        now = self._now()
        return self._put(subject, accounts.give_back(self._of(subject), receipt, now), now)

    async def grant(self, subject: str, tokens: int, key: str) -> Granted:
        """Add tokens, once for each key."""
        now = self._now()
        if mark := self._marks.get((subject, key)):
            return Granted(Balance(self._of(subject).at(now), now), mark[0])
        self._marks[subject, key] = tokens, now + KEEP_MS
        account = accounts.grant(self._of(subject), tokens, now)
        return Granted(self._put(subject, account, now), None)

    async def settle(self, subject: str, allowance: Allowance, tokens: int, key: str) -> Balance:
        """Take what was used meanwhile, once for each key."""
        now = self._now()
        account = self._of(subject).at(now)
        if (subject, key) not in self._marks:
            self._marks[subject, key] = tokens, now + KEEP_MS
            account = accounts.charge(account, allowance, tokens, now)
        return self._put(subject, account, now)

    async def look(self, subject: str) -> Balance:
        """The account as it is."""
        now = self._now()
        return Balance(self._of(subject).at(now), now)

    async def close(self) -> None:
        """Close what it holds open."""

    def _of(self, subject: str) -> Account:
        return self._accounts.get(subject) or Account()

    def _put(self, subject: str, account: Account, now: int) -> Balance:
        self._accounts[subject] = account
        return Balance(account, now)

    def _now(self) -> int:
        """The time; now and then, what has no say any more is dropped."""
        now = self._clock()
        if now >= self._sweep_at:
            self._sweep_at = now + _SWEEP_MS
            kept = {name: each.at(now) for name, each in self._accounts.items()}
            self._accounts = {name: each for name, each in kept.items() if not each.blank}
            self._marks = {key: mark for key, mark in self._marks.items() if now < mark[1]}
        return now
