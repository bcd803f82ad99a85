"""How long a replica takes: for a batch, and to become ready."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keepalive.planning.traces.steps import UnreadableTrace

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """What one replica does with its requests: one batch at a time, of what waits.

    Attributes:
        times: seconds for a batch of one, two and so on, up to the largest.
        spread: how much a batch's time varies: the standard deviation of its logarithm.
    """

    times: tuple[float, ...]
    spread: float = 0.1

    @property
    def batch(self) -> int:
        """The largest batch."""
        return len(self.times)

    @property
    def most_per_second(self) -> float:
        """Requests per second of one replica that is always busy with its best batch."""
        return max(size / time for size, time in enumerate(self.times, start=1))

    def up_to(self, batch: int) -> BatchTimes:
        """The same with no batch larger than that."""
        return BatchTimes(self.times[:batch], self.spread)


def line(base_s: float, item_s: float, batch: int, spread: float = 0.1) -> BatchTimes:
    """From a cost line: seconds = base + item × requests in the batch."""
    return BatchTimes(tuple(base_s + item_s * size for size in range(1, batch + 1)), spread)


def read(path: Path, batch: int | None = None) -> BatchTimes:
    """From measured batches: JSON such as `{"batch_seconds": {"1": 0.012, "8": 0.04}}`.

    Between two measured sizes it goes straight; below the first, a batch costs what the first does.

    Raises:
        UnreadableTrace: the file is missing or not like that.
    """
    parsed = _json(path)
    try:
        points = sorted((int(size), float(time)) for size, time in parsed["batch_seconds"].items())
    except (KeyError, TypeError, ValueError, AttributeError):
        points = []
    if not points or points[0][0] < 1 or not all(0 < time < math.inf for _, time in points):
        raise UnreadableTrace(f'{path} is not like {{"batch_seconds": {{"1": 0.012, "8": 0.04}}}}.')
    largest = points[-1][0]
    if batch is not None and batch > largest:
        raise UnreadableTrace(f"{path} has batches up to {largest}, not {batch}.")
    return BatchTimes(tuple(_between(points, size) for size in range(1, (batch or largest) + 1)))


def cold_starts(path: Path) -> tuple[float, ...]:
    """Seconds until replicas were ready, as `ember coldstart --json` writes them.

    Raises:
        UnreadableTrace: the file is missing or from something else.
    """
    parsed = _json(path)
    try:
        found = tuple(float(seconds) for seconds in parsed["ready_s"])
    except (KeyError, TypeError, ValueError):
        found = ()
    if not found or not all(0 <= seconds < math.inf for seconds in found):
        raise UnreadableTrace(f"{path} is not what `ember coldstart --json` writes.")
    return found


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableTrace(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise UnreadableTrace(f"{path} is no JSON.") from None


def _between(points: list[tuple[int, float]], size: int) -> float:
    below = [point for point in points if point[0] <= size]
    above = [point for point in points if point[0] >= size]
    if not below:
        return points[0][1]
    (low, first), (high, last) = below[-1], above[0]
    return first if low == high else first + (last - first) * (size - low) / (high - low)
