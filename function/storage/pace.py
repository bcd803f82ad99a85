"""Whether what is sent comes fast enough: a drip never meets a limit for silence."""

from __future__ import annotations

LEAST = 1024
"""Bytes a second that have to come, on average over `WINDOW_S`."""
WINDOW_S = 5.0


class TooSlowError(Exception):
    """It does not."""


class Pace:
    """Watches one transfer.

    Args:
        now: when it begins, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._since, self._came = now, 0

    def note(self, size: int, now: float) -> None:
        """So many bytes have come by then.

        Raises:
            TooSlowError: and with what came before in the same window, they are too few.
        """
        self._came += size
        took_s = now - self._since
        if took_s < WINDOW_S:
            return
        if self._came < LEAST * took_s:
            raise TooSlowError
        self._since, self._came = now, 0
