"""The rows of a batch: those who brought them, and what each gets of what comes out."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from function.runtime.scheduling.queue import TicketRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Rows = NDArray[np.float32]
    Part = TicketRows["BatchMember"]


class BatchMember:
    """One caller's rows, and what became of them.

    Attributes:
        inputs: an array for each input of the model.
        wake: notified when the member is settled or called, or is to see when a batch is due.
        results: the outputs by the first of the rows that they are for.
        missing: how many rows have no outputs yet.
        error: why there will be none.
    """

    def __init__(self, inputs: tuple[Rows, ...], lock: threading.Lock) -> None:
        self.inputs, self.wake = inputs, threading.Condition(lock)
        self.results: dict[int, list[Rows]] = {}
        self.missing = len(inputs[0])
        self.error: BaseException | None = None

    @property
    def settled(self) -> bool:
        """Whether all outputs are there, or none will be."""
        return not self.missing or self.error is not None

    def deliver(self, start: int, outputs: list[Rows]) -> None:
        """Take the outputs for the rows from `start` on; needs the lock."""
        self.results[start] = outputs
        self.missing -= len(outputs[0])
        if self.settled:
            self.wake.notify()

    def fail(self, error: BaseException) -> None:
        """End it with its first error; needs the lock."""
        self.error = self.error or error
        self.wake.notify()

    def outputs(self) -> list[Rows]:
        """An array for each output of the model; raises the error when there is one."""
        if self.error:
            raise self.error
        parts = [self.results[start] for start in sorted(self.results)]
        if len(parts) == 1:
            return parts[0]
        return [np.concatenate(part) for part in zip(*parts, strict=True)]


def batch_inputs(parts: list[Part], size: int) -> list[Rows]:
    """An array for each input of the model, filled up with zeros to so many rows."""
    columns = zip(*(part.ticket.item.inputs for part in parts), strict=True)
    return [
        _joined(
            [each[part.start : part.stop] for each, part in zip(column, parts, strict=True)], size
        )
        for column in columns
    ]


def _joined(slices: list[Rows], size: int) -> Rows:
    if missing := size - sum(map(len, slices)):
        slices.append(np.zeros((missing, *slices[0].shape[1:]), slices[0].dtype))
    return slices[0] if len(slices) == 1 else np.concatenate(slices)


def count(parts: list[Part]) -> int:
    """How many rows these are."""
    return sum(stop - start for _, start, stop in parts)


def split(parts: list[Part], most: int) -> Iterator[list[Part]]:
    """The same rows in portions of at most so many."""
    portion: list[Part] = []
    for ticket, first, stop in parts:
        start = first
        while start < stop:
            rows = min(stop - start, most - count(portion))
            portion.append(TicketRows(ticket, start, start + rows))
            start += rows
            if count(portion) == most:
                yield portion
                portion = []
    if portion:
        yield portion
