"""Tokens are taken before work and given back where none was done; what holds without the store.

When the store cannot be asked, either each process counts by itself, on what it has seen last, and
settles that later, or no request is let in that would cost tokens. A store that has no room is
asked in vain for as long as it likes: nothing is let in uncounted for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from function import tasks
from function.admission.account import CURRENT, Receipt
from function.admission.account_store import AT_ONCE, StoreFullError
from function.admission.breaker import Breaker
from function.admission.offline import OfflineAccounts
from function.documented_enum import DocumentedEnum
from function.problems import RetryLaterError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from function.admission.account import Account, Allowance, Debit
    from function.admission.account_store import AccountStore, Granted
    from function.admission.offline import Owed

log = logging.getLogger("ember.quota")
audit = logging.getLogger("ember.audit")

T = TypeVar("T")

_SETTLE_S = 1.0
"""How often it is tried to settle what was used while the store was away."""


class QuotaEvent(DocumentedEnum):
    """What happens to tokens."""

    TAKEN = "taken", "before work"
    REFUSED = "refused", "not enough of them"
    REFUNDED = "refunded", "no work was done for them"
    GRANTED = "granted", "by an operator"
    UNDECIDED = "undecided", "the store could not be asked"
    SETTLED = "settled", "used while the store was away, and counted there since"
    LOST = "lost", "they should have been refunded, but the store could not be reached"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a subject stands.

    Attributes:
        account: its account.
        allowance: what its tier gives.
        now: the time of the account's clock, in milliseconds.
        certain: whether the store says so; else it is what this process makes of what it saw last.
    """

    account: Account
    allowance: Allowance
    now: int
    certain: bool = True

    @property
    def tokens(self) -> int:
        """How many can be spent at once."""
        left = self.account.left(self.allowance) + self.account.granted
        if (cap := self.allowance.cap) is None:
            return left
        return max(0, min(left, cap - self.account.spent))

    @property
    def refill_s(self) -> int:
        """Seconds until the allowance is full again; 0 when it is."""
        return -(-max(0, self.account.ends - self.now) // 1000)


class Quota:
    """Takes tokens, gives them back and grants them.

    Args:
        store: keeps the accounts.
        fail_open: whether this process counts by itself when the store cannot be asked.
        breaker: says when it is not worth asking.
    """

    def __init__(
        self, store: AccountStore, *, fail_open: bool, breaker: Breaker | None = None
    ) -> None:
        self._store = store
        self._fail_open = fail_open
        self._breaker = breaker or Breaker()
        self._free = asyncio.Semaphore(AT_ONCE)
        self._offline = OfflineAccounts()
        self._settling: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._full = False
        self.listeners: list[Callable[[QuotaEvent, int], None]] = []

    @property
    def down(self) -> bool:
        """Whether the store counts as down."""
        return self._breaker.open

    async def take(self, subject: str, allowance: Allowance, tokens: int) -> tuple[Debit, Standing]:
        """Take tokens, all or none.

        When the caller is cancelled meanwhile, what is taken is given back.

        Raises:
            Problem: `quota_unavailable`.
        """
        try:
            debit, now = await self._asked(subject, allowance, tokens)
        except _AwayError as away:
            self._tell(QuotaEvent.UNDECIDED, tokens)
            if away.full or not self._fail_open:
                raise unavailable() from None
            debit, now = self._offline.take(subject, allowance, tokens)
            if not debit.receipt:
                self._tell(QuotaEvent.REFUSED, tokens)
            elif self._settling is None:
                self._settling = asyncio.create_task(self._settle_later())
            return debit, Standing(debit.account, allowance, now, certain=False)
        self._tell(QuotaEvent.TAKEN if debit.receipt else QuotaEvent.REFUSED, tokens)
        return debit, Standing(debit.account, allowance, now)

    def refund(self, subject: str, receipt: Receipt) -> None:
        """Give back what was taken for work that never began; nobody waits for it."""
        if receipt.ends == CURRENT:  # it was taken while the store was away
            if not (left := self._offline.give_back(subject, receipt.tokens)):
                return
            receipt = Receipt(left, 0, CURRENT, CURRENT)
        self._later(self._refund(subject, receipt))

    async def grant(self, subject: str, tokens: int, key: str) -> Granted:
        """Add tokens, once for each key.

        Raises:
            Problem: `quota_unavailable`.
        """
        try:
            granted = await self._ask(lambda: self._store.grant(subject, tokens, key))
        except _AwayError:
            raise unavailable() from None
        if granted.before is None:
            self._tell(QuotaEvent.GRANTED, tokens)
        return granted

    async def standing(self, subject: str, allowance: Allowance) -> Standing:
        """How a subject stands.

        Raises:
            Problem: `quota_unavailable`.
        """
        try:
            balance = await self._ask(lambda: self._store.look(subject))
        except _AwayError:
            raise unavailable() from None
        return Standing(balance.account, allowance, balance.now)

    async def prepare(self) -> None:
        """Ask the store for the first time."""
        with contextlib.suppress(_AwayError):
            await self._ask(lambda: self._store.look("nobody"))

    async def settle(self) -> None:
        """Take in the store what was used while it was away, as far as it can be asked."""
        with contextlib.suppress(_AwayError):
            for subject in self._offline.debtors:
                await self._settle(subject)

    async def close(self) -> None:
        """Settle what is open, wait for refunds under way, and close the store."""
        if self._settling:
            await tasks.end(self._settling)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.settle()
        if debtors := self._offline.debtors:
            log.error(
                "what was used while the quota store was away is not counted there",
                extra={"callers": len(debtors)},
            )
        await self._store.close()

    async def _asked(self, subject: str, allowance: Allowance, tokens: int) -> tuple[Debit, int]:
        """What the store says; what is taken for who has gone meanwhile is given back."""
        question = self._take(subject, allowance, tokens)
        if self._store.instant:
            return await question  # there is no meanwhile
        asked = asyncio.ensure_future(question)
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            self._later(self._undo(subject, asked))
            raise

    async def _take(self, subject: str, allowance: Allowance, tokens: int) -> tuple[Debit, int]:
        await self._settle(subject)  # or the store would give twice what there is
        debit, now = await self._ask(lambda: self._store.take(subject, allowance, tokens))
        self._offline.saw(subject, debit.account, now)
        return debit, now

    async def _settle(self, subject: str) -> None:
        for owed in self._offline.owed(subject):
            self._tell(
                QuotaEvent.SETTLED, await self._ask(partial(self._settlement, subject, owed))
            )
            self._offline.settled(subject, owed)

    async def _settlement(self, subject: str, owed: Owed) -> int:
        """Settle one debt; how many tokens that was."""
        owed.sealed, tokens = True, owed.tokens(self._offline.now)
        await self._store.settle(subject, owed.allowance, tokens, owed.key)
        return tokens

    async def _settle_later(self) -> None:
        """Settle until nothing is owed any more."""
        while self._offline.debtors:
            await asyncio.sleep(_SETTLE_S)
            await self.settle()
        self._settling = None

    async def _ask(self, question: Callable[[], Awaitable[T]]) -> T:
        """The store's answer.

        Only some questions are asked at once: the others wait here, where they learn at once that
        the store is down, and where no time counts.

        Raises:
            _AwayError: there is none.
        """
        async with self._free:
            if (attempt := self._breaker.attempt()) is None:
                raise _AwayError(full=self._full)
            try:
                answer = await question()
            except Exception as error:
                self._full = isinstance(error, StoreFullError)
                was_down = self.down
                self._breaker.failed(attempt)
                if self.down and not was_down:
                    reason = "it has no memory left" if self._full else repr(error)[:200]
                    log.error("the quota store is down", extra={"reason": reason})  # noqa: TRY400
                raise _AwayError(full=self._full) from error
            if self.down:
                log.info("the quota store is back")
            self._full = False
            self._breaker.succeeded()
            return answer

    async def _undo(self, subject: str, asked: asyncio.Future[tuple[Debit, int]]) -> None:
        with contextlib.suppress(_AwayError):
            if receipt := (await asked)[0].receipt:
                self._tell(QuotaEvent.TAKEN, receipt.tokens)
                await self._refund(subject, receipt)

    async def _refund(self, subject: str, receipt: Receipt) -> None:
        try:
            await self._settle(subject)
            await self._ask(lambda: self._store.give_back(subject, receipt))
        except _AwayError:
            self._tell(QuotaEvent.LOST, receipt.tokens)
        else:
            self._tell(QuotaEvent.REFUNDED, receipt.tokens)

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _tell(self, event: QuotaEvent, tokens: int) -> None:
        for listener in self.listeners:
            listener(event, tokens)


class _AwayError(Exception):
    """The store cannot be asked, or is `full`."""

    def __init__(self, *, full: bool) -> None:
        super().__init__()
        self.full = full


def unavailable() -> RetryLaterError:
    """The problem of a store that cannot be asked."""
    return RetryLaterError("quota_unavailable", "The store of the quotas cannot be reached.", 5.0)
