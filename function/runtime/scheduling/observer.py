"""What happens where requests wait and share, for the metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from function.request_context import Lane


class Observer(Protocol):
    """Learns what happens; called from any thread."""

    def waited(self, where: str, lane: Lane, seconds: float) -> None:
        """Somebody has waited for a "place", for a "thread" or in a "batch"."""

    def batched(self, stage: str, items: int) -> None:
        """A batch of so many items, padding not counted, has run."""

    def dropped(self, stage: str) -> None:
        """A member was dropped because nobody waits for it any more, or it is too late."""

    def bisected(self, stage: str) -> None:
        """A batch has failed and is tried again in two parts."""


class Unobserved:
    """Ignores all of it."""

    def waited(self, where: str, lane: Lane, seconds: float) -> None:
        """Ignore a wait."""

    def batched(self, stage: str, items: int) -> None:
        """Ignore a batch."""

    def dropped(self, stage: str) -> None:
        """Ignore a member that was dropped."""

    def bisected(self, stage: str) -> None:
        """Ignore a batch that has failed."""
