"""What a batch costs: a line, time = base + slope · rows, learned from the batches that ran."""

from __future__ import annotations

_MEMORY = 0.95  # how much of the weight of all before remains after one more observation
_SPREAD = 0.05  # the least variance of the sizes, in parts of the squared mean, that shows a slope


class Cost:
    """The cost line of one stage, by least squares in which old batches weigh less and less.

    Sizes that are all alike say nothing about the slope, which then stays as it was. Before there
    is one, a row is taken to cost what it costs alone. Callers see to it that only one thread at a
    time is here.

    Attributes:
        base: seconds of a batch, whatever its size.
        slope: seconds for each row more.
    """

    def __init__(self) -> None:
        self.base = self.slope = 0.0
        self._weight = self._n = self._t = self._nn = self._nt = 0.0
        self._sloped = False

    @property
    def known(self) -> bool:
        """Whether anything was observed yet."""
        return self._weight > 0

    @property
    def sloped(self) -> bool:
        """Whether batches of different sizes have shown what of it is the base."""
        return self._sloped

    def seconds(self, rows: int) -> float:
        """How long a batch of so many rows takes; 0 when nothing is known."""
        return self.base + self.slope * rows

    def observe(self, rows: int, seconds: float) -> None:
        """Learn from a batch."""
        sums = self._weight, self._n, self._t, self._nn, self._nt
        new = 1.0, rows, seconds, rows * rows, rows * seconds
        self._weight, self._n, self._t, self._nn, self._nt = (
            _MEMORY * old + more for old, more in zip(sums, new, strict=True)
        )
        n, t = self._n / self._weight, self._t / self._weight
        variance = self._nn / self._weight - n * n
        if variance > _SPREAD * n * n:
            self._sloped = True
            self.slope = max(0.0, (self._nt / self._weight - n * t) / variance)
        elif not self._sloped:
            self.slope = t / n
        self.base = t - self.slope * n
        if self.base < 0:
            self.base, self.slope = 0.0, t / n
