"""What can be done with an object behind a URI, whatever its scheme.

An `ObjectStore` reads and writes whole objects in memory, within a limit. A `Source` brings the
ranges of one large object, so that a transfer that breaks off goes on from where it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Take = Callable[[int], None]
    """Takes room for so many more bytes, or raises."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about an object without reading it.

    Attributes:
        size: bytes; None when the server does not say.
        tag: what changes when the content changes: an ETag, a generation, a time; "" for none.
        streams: how many ranges of it may usefully come at once; 0 when it only comes as a whole.
        generation: a tag that is a number and only grows; None when there is no such thing.
        media_type: as it was declared; None when it was not.
        metadata: what was written along; empty where it cannot be kept.
    """

    size: int | None = None
    tag: str = ""
    streams: int = 0
    generation: int | None = None
    media_type: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Object:
    """An object that was read."""

    data: bytes
    facts: Facts


class ObjectStore(Protocol):
    """The objects of one scheme.

    Every call raises `RefusedError` for what stays as it is, and `TransientError` for what may be
    gone at the next attempt.
    """

    async def stat(self, uri: str) -> Facts:
        """What is known about an object without reading it."""
        ...

    async def read(self, uri: str, limit: int, take: Take) -> Object:
        """Read an object.

        Args:
            uri: where it is.
            limit: the most bytes that it may have; no more than that is ever held.
            take: is asked for room before bytes come.
        """
        ...

    async def write(
        self,
        uri: str,
        data: bytes,
        *,
        media_type: str,
        metadata: Mapping[str, str],
        if_generation_match: int | None,
    ) -> int | None:
        """Write an object whole or not at all; its generation, where there is such a thing.

        Args:
            uri: where to.
            data: all of it.
            media_type: of the data.
            metadata: goes along, where it can be kept.
            if_generation_match: what has to be there before: 0 for nothing; None for anything.

        Raises:
            ChangedError: something else is there.
        """
        ...

    async def delete(self, uri: str) -> None:
        """Delete an object; there may be none."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


class Sink(Protocol):
    """Takes bytes in order, from `at` to `stop`."""

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
        """Take bytes; those beyond `stop` are left out. Returns how many were given."""
        ...

    def copy(self, fd: int) -> int:
        """Take bytes of an open file, from `at` on. Returns how many; 0 at its end."""
        ...


class Source(Protocol):
    """One large object.

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
