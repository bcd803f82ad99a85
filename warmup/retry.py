"""How long to wait before something that failed is tried again, and when to give up."""

from __future__ import annotations

from dataclasses import dataclass


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
        pause = min(self.most_s, self.first_s * 2.0 ** min(failures - 1, 16))
        return pause if since_s + pause <= self.total_s else None
