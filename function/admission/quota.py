"""Tokens are taken before work and given back where none was done; what holds without the store.

When the store cannot be asked, either every request is let in, or none that would cost tokens.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from function.admission.breaker import Breaker
from function.meaning import Meaning
from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from function.admission.account import Account, Allowance, Debit, Receipt
    from function.admission.store import Balance, Granted, Store

log = logging.getLogger("ember.quota")
audit = logging.getLogger("ember.audit")

T = TypeVar("T")


class Event(Meaning):
    """What happens to tokens."""

    TAKEN = "taken", "before work"
    REFUSED = "refused", "not enough of them"
    REFUNDED = "refunded", "no work was done for them"
    GRANTED = "granted", "by an operator"
    UNDECIDED = "undecided", "the store could not be asked"
    LOST = "lost", "they should have been refunded, but the store could not be reached"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a subject stands.

    Attributes:
        account: its account.
        allowance: what its tier gives.
        now: the time of the account's clock, in milliseconds.
    """

    account: Account
    allowance: Allowance
    now: int

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
        fail_open: whether requests are let in when the store cannot be asked.
        breaker: says when it is not worth asking.
    """

    def __init__(self, store: Store, *, fail_open: bool, breaker: Breaker | None = None) -> None:
        self._store = store
        self._fail_open = fail_open
        self._breaker = breaker or Breaker()
        self._tasks: set[asyncio.Task[None]] = set()
        self.listeners: list[Callable[[Event, int], None]] = []

    @property
    def down(self) -> bool:
        """Whether the store counts as down."""
        return self._breaker.open

    async def take(
        self, subject: str, allowance: Allowance, tokens: int
    ) -> tuple[Debit, Standing] | None:
        """Take tokens, all or none; None where that could not be decided and is let pass.

        When the caller is cancelled meanwhile, what is taken is given back.

        Raises:
            Problem: `quota_unavailable`.
        """
        question = self._ask(lambda: self._store.take(subject, allowance, tokens))
        if self._store.instant:
            answer = await question  # there is no meanwhile
        else:
            asked = asyncio.ensure_future(question)
            try:
                answer = await asyncio.shield(asked)
            except asyncio.CancelledError:
                self._later(self._undo(subject, asked))
                raise
        if answer is None:
            self._tell(Event.UNDECIDED, tokens)
            if self._fail_open:
                return None
            raise unavailable()
        debit, now = answer
        self._tell(Event.TAKEN if debit.receipt else Event.REFUSED, tokens)
        return debit, Standing(debit.account, allowance, now)

    def refund(self, subject: str, receipt: Receipt) -> None:
        """Give back what was taken for work that never began; nobody waits for it."""
        self._later(self._refund(subject, receipt))

    async def grant(self, subject: str, tokens: int, key: str) -> Granted:
        """Add tokens, once for each key.

        Raises:
            Problem: `quota_unavailable`.
        """
        granted = await self._ask(lambda: self._store.grant(subject, tokens, key))
        if granted is None:
            raise unavailable()
        if granted.before is None:
            self._tell(Event.GRANTED, tokens)
        return granted

    async def look(self, subject: str) -> Balance:
        """A subject's account as it is.

        Raises:
            Problem: `quota_unavailable`.
        """
        balance = await self._ask(lambda: self._store.look(subject))
        if balance is None:
            raise unavailable()
        return balance

    async def prepare(self) -> None:
        """Ask the store for the first time."""
        await self._ask(lambda: self._store.look("nobody"))

    async def close(self) -> None:
        """Wait for refunds under way, and close the store."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._store.close()

    async def _ask(self, question: Callable[[], Awaitable[T]]) -> T | None:
        """The store's answer; None when there is none."""
        if not self._breaker.allows():
            return None
        try:
            answer = await question()
        except Exception as error:
            was_down = self.down
            self._breaker.failed()
            if self.down and not was_down:
                log.error("the quota store is down", extra={"reason": repr(error)[:200]})  # noqa: TRY400
            return None
        if self.down:
            log.info("the quota store is back")
        self._breaker.succeeded()
        return answer

    async def _undo(self, subject: str, asked: asyncio.Future[tuple[Debit, int] | None]) -> None:
        if (answer := await asked) and (receipt := answer[0].receipt):
            self._tell(Event.TAKEN, receipt.tokens)
            await self._refund(subject, receipt)

    async def _refund(self, subject: str, receipt: Receipt) -> None:
        done = await self._ask(lambda: self._store.give_back(subject, receipt))
        self._tell(Event.REFUNDED if done else Event.LOST, receipt.tokens)

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _tell(self, event: Event, tokens: int) -> None:
        for listener in self.listeners:
            listener(event, tokens)


def unavailable() -> Problem:
    """The problem of a store that cannot be asked."""
    return Problem(
        "quota_unavailable",
        "The store of the quotas cannot be reached.",
        headers={"Retry-After": "5"},
    )
