"""Who is told of what happens where requests wait and share: the metrics, if anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from function.request_context import Lane


class Observer(Protocol):
    """Is told what happens; called from any thread."""

    def waited(self, where: str, lane: Lane, seconds: float) -> None:
        """Somebody has waited for a "place", for a "thread" or in a "batch"."""

    def batched(self, stage: str, items: int) -> None:
        """A batch of so many items, padding not counted, has run."""

    def dropped(self, stage: str) -> None:
        """A member was dropped because nobody waits for it any more, or it is too late."""

    def bisected(self, stage: str) -> None:
        """A batch has failed and is tried again in two parts."""


class Unobserved:
    """Nobody is told."""

    def waited(self, where: str, lane: Lane, seconds: float) -> None:
        """See `Observer`."""

    def batched(self, stage: str, items: int) -> None:
        """See `Observer`."""

    def dropped(self, stage: str) -> None:
        """See `Observer`."""

    def bisected(self, stage: str) -> None:
        """See `Observer`."""
