"""When those who were refused come again, so that there is room when they do.

A refusal is a position in a line that nobody has to stand in. Who comes later is judged as if those
who were asked to come again waited already, and is asked to come at a later moment; so nobody takes
their room meanwhile, and they do not all come at once. Who comes when somebody was asked to come is
taken for that one, as nobody says who he is.
"""

from __future__ import annotations

import math
import time
from bisect import insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_EARLY_S = 0.001  # a timer may be that much early; the longer, the more others are taken for it
_LATE_S = 3.0  # how long one is waited for
_MOST_S = 60.0  # nobody is asked to stay away for longer


class Promises:
    """Those of one lane.

    Args:
        clock: seconds, never going back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: list[float] = []

    def __len__(self) -> int:
        """How many were asked to come, and have not."""
        self._forget()
        return len(self._due)

    def make(self, again_s: float) -> int:
        """Ask one more to come again; returns after how many whole seconds, at least one."""
        seconds = max(1, math.ceil(min(again_s, _MOST_S)))
        insort(self._due, self._clock() + seconds)
        return seconds

    def redeem(self) -> bool:
        """Whether somebody was asked to come now, who then has."""
        self._forget()
        if self._due and self._due[0] <= self._clock() + _EARLY_S:
            del self._due[0]
            return True
        return False

    def _forget(self) -> None:
        """Forget those who did not come."""
        gone = self._clock() - _LATE_S
        while self._due and self._due[0] < gone:
            del self._due[0]
