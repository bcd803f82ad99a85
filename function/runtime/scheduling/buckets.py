"""How many rows the next batch takes, and which size is run for them: pure decisions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.runtime.scheduling.cost import Cost


@dataclass(frozen=True, slots=True)
class Buckets:
    """The sizes that a stage may run.

    Attributes:
        sizes: batch sizes that were warmed, rising.
        pads: whether nothing else may run, so that a batch is filled up with zeros. On a CPU every
            size up to the largest is as good, and a row of zeros costs as much as any other.
    """

    sizes: tuple[int, ...] = (1,)
    pads: bool = False

    @property
    def largest(self) -> int:
        """The most rows of a batch."""
        return self.sizes[-1]

    def up_to(self, most: int) -> Buckets:
        """The same without the sizes above `most`; the smallest one always stays."""
        kept = tuple(size for size in self.sizes if size <= most)
        return Buckets(kept or self.sizes[:1], self.pads)

    def above(self, size: int) -> int:
        """The next larger size, or the largest."""
        return next((each for each in self.sizes if each > size), self.largest)

    def padded(self, rows: int) -> int:
        """The size that is run for so many rows, at most the largest."""
        return self.sizes[bisect_left(self.sizes, rows)] if self.pads else rows

    def rows(self, waiting: int, cost: Cost, slack: float) -> int:
        """How many rows to take.

        As many as there are, but where padding makes them dear, a full batch of fewer is better;
        and fewer where only then the most urgent is done in time.

        Args:
            waiting: how many there are, at least 1.
            cost: what a batch costs.
            slack: seconds until the deadline of the most urgent one.
        """
        most = min(waiting, self.largest)
        if cost.seconds(self.padded(most)) > slack:
            sizes = self.sizes if self.pads else range(1, most + 1)
            in_time = [size for size in sizes if size < most and cost.seconds(size) <= slack]
            most = in_time[-1] if in_time else most
        if not self.pads or (below := bisect_right(self.sizes, most)) == 0:
            return most
        full = self.sizes[below - 1]
        dear = cost.seconds(self.padded(most)) * full > cost.seconds(full) * most
        return full if dear else most
