"""Accounts in Redis, for replicas that share them.

Each decision is one script, hence atomic, and one round trip. Redis' own clock counts, so that the
clocks of replicas do not matter. Both keys of a subject have one hash tag, so that a cluster keeps
them together.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from pathlib import Path

from redis.exceptions import ResponseError

from function.admission.account import Account, Allowance, Debit, Receipt
from function.admission.account_store import AT_ONCE, KEEP_MS, Balance, Granted, StoreFullError
from function.redis.client import Client, is_full
from function.redis.script import Script

_SCRIPT = Path(__file__).parent / "account.lua"
_ANSWERS = 32
_TRIES = 5
_TOO_LATE = -1
_REPEATED = 2


class RedisAccounts:
    """Keeps accounts in Redis.

    Args:
        url: `redis://` or `rediss://` (TLS), with user, password and database if any.
        timeout_s: how long a decision may take.

    Raises:
        ValueError: it is no such address.
    """

    instant = False

    def __init__(self, url: str, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._redis = Client(url, timeout_s, AT_ONCE)
        self._script = Script(self._redis, _SCRIPT)
        self._ahead: deque[float] = deque(maxlen=_ANSWERS)

    async def take(self, subject: str, allowance: Allowance, tokens: int) -> tuple[Debit, int]:
        """Take tokens, all or none; also the time of the clock, in milliseconds."""
        cap = -1 if allowance.cap is None else allowance.cap
        facts = tokens, allowance.tokens, allowance.period_ms, cap
        now, done, account, first, second = await self._run("take", subject, *facts)
        if not done:
            return Debit(account, None, None if first < 0 else first), now
        return Debit(account, Receipt(first, second, account.ends, account.hour)), now

    async def give_back(self, subject: str, receipt: Receipt) -> Balance:
        """Undo a debit; the account after that."""
        facts = receipt.allowed, receipt.granted, receipt.ends, receipt.hour
        now, _, account, *_ = await self._run("back", subject, *facts)
        return Balance(account, now)

    async def grant(self, subject: str, tokens: int, key: str) -> Granted:
        """Add tokens, once for each key."""
        now, done, account, before, _ = await self._run("grant", subject, tokens, KEEP_MS, mark=key)
        return Granted(Balance(account, now), before if done == _REPEATED else None)

    async def settle(self, subject: str, allowance: Allowance, tokens: int, key: str) -> Balance:
        """Take what was used meanwhile, once for each key."""
        facts = tokens, KEEP_MS, allowance.tokens, allowance.period_ms
        now, _, account, *_ = await self._run("settle", subject, *facts, mark=key)
        return Balance(account, now)

    async def look(self, subject: str) -> Balance:
        """The account as it is."""
        now, _, account, *_ = await self._run("look", subject)
        return Balance(account, now)

    async def close(self) -> None:
        """Close what it holds open."""
        await self._redis.close()

    async def _run(
        self, what: str, subject: str, *facts: int, mark: str = ""
    ) -> tuple[int, int, Account, int, int]:
        """The time, what happened, the account, and the two more; see account.lua.

        Raises:
            TimeoutError: it took too long. It then changes nothing later, as soon as the time of
                Redis is known from an earlier answer.
            FullError: Redis has no memory left.
            RedisError, OSError: it cannot be reached, or refuses.
        """
        tag = f"ember:quota:{{{_hash(subject)}}}"
        keys = [f"{tag}:account", f"{tag}:grant:{_hash(mark)}"]
        for tries in range(_TRIES):
            until = 0
            if self._ahead:
                allowed_ms = self._timeout_s * 1e3 * 2**tries
                until = int(time.monotonic() * 1e3 + max(self._ahead) + allowed_ms)
            try:
                answer = await self._script(keys, [what, until, *facts], idempotent=what == "look")
            except ResponseError as error:
                if is_full(error):
                    raise StoreFullError from error
                raise
            now, done, used, ends, granted, spent, hour, first, second = map(int, answer)
            if done != _TOO_LATE:
                # By how much its clock is ahead of ours, at least: the answer took a while.
                self._ahead.append(now - time.monotonic() * 1e3)
                return now, done, Account(used, ends, granted, spent, hour), first, second
            # Its clock was set, and is learned anew; or this process was too busy to ask in time.
            self._ahead.clear()
            self._ahead.append(now - time.monotonic() * 1e3)
        raise TimeoutError


def _hash(text: str) -> str:
    """What stands for a subject or a key in Redis: it names nobody and has no braces."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]
