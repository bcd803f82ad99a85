"""How long to wait before something that failed is tried again, and when to give up."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

PROGRESS = 1024**2
"""So many new bytes are worth a new start of the count of failures."""

LONGEST_S = 30.0
LONGEST_ASKED_S = 120.0
"""A server that asks for more than this is not waited for."""

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""The statuses of HTTP after which another attempt may go better."""

_NUMBER = re.compile("[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Retry:
    """Pauses that double, until a total time has passed.

    Attributes:
        total_s: no new try begins later than this after the first failure; 0 means no second try.
        first_s: the first pause.
        most_s: the longest pause.
    """

    total_s: float
    first_s: float = 1.0
    most_s: float = 30.0

    def pause(self, failures: int, since_s: float) -> float | None:
        """The pause before the next try, or None to give up.

        Args:
            failures: how often it has failed in a row, at least 1.
            since_s: seconds since the first of these failures.
        """
        pause = _doubled(self.first_s, failures, self.most_s)
        return pause if since_s + pause <= self.total_s else None


@dataclass(slots=True)
class Patience:
    """How often in a row something has failed without progress.

    Attributes:
        retries: how often it may.
        rng: where the jitter comes from.
    """

    retries: int
    rng: random.Random = field(default_factory=random.Random)
    failures: int = 0

    def wait_s(self, gained: int, asked_s: float) -> float | None:
        """How long to wait after another failure; None to give up.

        Exponential back-off from half a second on with full jitter, so that the replicas that a
        failure hit together do not come back together; never less than the server asked for.

        Args:
            gained: the bytes that came since the failure before.
            asked_s: what the server asked for.
        """
        self.failures = 1 if gained >= PROGRESS else self.failures + 1
        if self.failures > self.retries or asked_s > LONGEST_ASKED_S:
            return None
        return asked_s + self.rng.uniform(0, _doubled(0.5, self.failures, LONGEST_S))


def retry_after(text: str, now: datetime | None = None) -> float:
    """The seconds that a Retry-After header asks to wait: it is a number or a date.

    What is neither asks for nothing.
    """
    if _NUMBER.fullmatch(text.strip()):
        return float(text)
    try:
        then = parsedate_to_datetime(text)
        wait = then.replace(tzinfo=then.tzinfo or UTC) - (now or datetime.now(UTC))
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
    return max(0.0, wait.total_seconds())


def _doubled(first_s: float, failures: int, most_s: float) -> float:
    """Seconds that double with each failure, up to the most."""
    return min(most_s, first_s * 2.0 ** min(failures - 1, 16))
