"""How many may listen to jobs at once, of each caller and in all."""

from __future__ import annotations

from collections import Counter


class TooManyStreamsError(Exception):
    """No further stream may be open: of this caller, if it is `own`, or of anybody."""

    def __init__(self, *, own: bool) -> None:
        super().__init__()
        self.own = own


class StreamLimits:
    """Counts open streams.

    Args:
        limit: how many may be open.
        each: how many of one caller; of anonymous ones only `limit` counts.
    """

    def __init__(self, limit: int, each: int) -> None:
        self.limit, self.each = limit, each
        self._taken: Counter[str | None] = Counter()

    def __len__(self) -> int:
        return self._taken.total()

    def take(self, caller: str | None) -> Stream:
        """Open a stream; it counts until it is released or nothing refers to it any more.

        Raises:
            TooManyStreamsError: it would be one too many.
        """
        if caller is not None and self._taken[caller] >= self.each:
            raise TooManyStreamsError(own=True)
        if len(self) >= self.limit:
            raise TooManyStreamsError(own=False)
        self._taken[caller] += 1
        return Stream(self, caller)

    def free(self, caller: str | None) -> None:
        """Count one stream less."""
        self._taken[caller] -= 1
        self._taken += Counter[str | None]()  # without those who have none


class Stream:
    """An open stream."""

    __slots__ = ("_caller", "_limits")

    def __init__(self, limits: StreamLimits, caller: str | None) -> None:
        self._limits: StreamLimits | None = limits
        self._caller = caller

    def release(self) -> None:
        """Close it; twice is the same as once."""
        if limits := self._limits:
            self._limits = None
            limits.free(self._caller)

    __del__ = release  # an answer that its client did not wait for never begins
