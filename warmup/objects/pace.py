"""Whether what is sent comes fast enough: a drip never meets a limit for silence."""

from __future__ import annotations

from warmup.objects.errors import RefusedError

LEAST = 1024
"""Bytes a second that have to come, on average over `WINDOW_S`."""
WINDOW_S = 5.0


class TooSlowError(RefusedError):
    """What a host sends comes too slowly; that it does so again costs too much to try."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"What {host} sends comes too slowly: fewer than {LEAST} bytes a second.", limit=LEAST
        )


class Pace:
    """Watches one transfer.

    Args:
        host: where it comes from.
        now: when it begins, in seconds.
    """

    def __init__(self, host: str, now: float) -> None:
        self._host, self._since, self._came = host, now, 0

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
            raise TooSlowError(self._host)
        self._since, self._came = now, 0
