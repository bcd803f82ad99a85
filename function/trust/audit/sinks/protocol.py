"""What takes the lines of a chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from function.trust.audit.chain import ChainHead


class LineSink(Protocol):
    """Takes lines, one at a time, whole or not at all. One thread calls it.

    Each call raises OSError when the lines cannot be kept; the next one tries again.
    """

    def open(self, chain: str) -> list[ChainHead]:
        """Begin with a chain; how far other chains are in the same place."""
        ...

    def append(self, line: bytes, seq: int) -> None:
        """Hand a line to the system, so that it outlives the process; it is line `seq`."""
        ...

    def sync(self) -> None:
        """Have all lines so far outlive the machine, where that is wanted."""
        ...

    def tick(self) -> None:
        """Do what is to be done now and then."""
        ...

    def close(self) -> None:
        """The chain has ended."""
        ...
