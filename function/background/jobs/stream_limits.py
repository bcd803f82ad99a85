"""How many may listen to jobs at once, of each caller and in all."""

from __future__ import annotations

from collections import Counter


class TooManyStreamsError(Exception):
    """There is no further seat: for this caller, if it is `own`, or for anybody."""

    def __init__(self, *, own: bool) -> None:
        super().__init__()
        self.own = own


class StreamLimits:
    """Gives seats.

    Args:
        limit: how many there are.
        each: how many one caller may have; where nobody says who he is, only `limit` counts.
    """

    def __init__(self, limit: int, each: int) -> None:
        self.limit, self.each = limit, each
        self._taken: Counter[str | None] = Counter()

    def __len__(self) -> int:
        return self._taken.total()

    def take(self, caller: str | None) -> Stream:
        """A seat; it is free again when it is released, or when nobody has it any more.

        Raises:
            ManyError: there is none.
        """
        if caller is not None and self._taken[caller] >= self.each:
            raise TooManyStreamsError(own=True)
        if len(self) >= self.limit:
            raise TooManyStreamsError(own=False)
        self._taken[caller] += 1
        return Stream(self, caller)

    def free(self, caller: str | None) -> None:
        """Have one seat back."""
        self._taken[caller] -= 1
        self._taken += Counter[str | None]()  # without those who have none


class Stream:
    """What who listens holds."""

    __slots__ = ("_caller", "_seats")

    def __init__(self, seats: StreamLimits, caller: str | None) -> None:
        self._seats: StreamLimits | None = seats
        self._caller = caller

    def release(self) -> None:
        """Give it back."""
        if seats := self._seats:
            self._seats = None
            seats.free(self._caller)

    __del__ = release  # an answer that its client did not wait for never begins
