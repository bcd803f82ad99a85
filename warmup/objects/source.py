"""What a transfer needs of a place that files come from, and how such a place can fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class TransientError(Exception):
    """A failure that may be gone at the next attempt.

    Attributes:
        retry_after_s: how long the server asked to wait, if it did.
    """

    def __init__(self, reason: str, retry_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class RestartError(TransientError):
    """What has come so far cannot be continued: the file changed, or it comes only as a whole."""


class RefusedError(Exception):
    """A failure that stays: the file is not there, or not for us.

    Attributes:
        status: of HTTP, where the server has said one.
    """

    def __init__(self, reason: str | None, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Facts:
    """What a source says about a file.

    Attributes:
        size: bytes; None when it does not say.
        tag: what changes when the content changes: an ETag, a generation, a time; "" for none.
        streams: how many parts of it may usefully come at once; 0 when it only comes as a whole.
    """

    size: int | None
    tag: str
    streams: int


class Sink(Protocol):
    """Takes bytes in order, from `at` to `stop`; it may be told elsewhere to take no more."""

    @property
    def at(self) -> int:
        """The first byte that is missing."""
        ...

    @property
    def stop(self) -> int:
        """The end of what is wanted."""
        ...

    @property
    def full(self) -> bool:
        """Whether nothing is missing."""
        ...

    def write(self, chunk: bytes | bytearray) -> int:
        """Take bytes; those beyond `stop` are left out."""
        ...

    def copy(self, fd: int) -> int:
        """Take bytes of an open file, from `at` on; how many says the result, 0 at its end."""
        ...


class Source(Protocol):
    """One file somewhere.

    Both calls raise TransientError, RestartError or RefusedError, and may be cancelled.
    """

    async def stat(self) -> Facts:
        """Ask for its facts."""
        ...

    async def read(self, facts: Facts, sink: Sink) -> None:
        """Bring the bytes that the sink lacks, from `sink.at` on; fewer when the source ends.

        Args:
            facts: what `stat` said; the content must still be that one.
            sink: takes the bytes in order.
        """
        ...
