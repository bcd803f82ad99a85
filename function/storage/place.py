"""What a place that URIs lead to can do, and how it fails."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from function.problems import ObjectNotFoundError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Take = Callable[[int], None]
    """Takes room for so many more bytes, or raises."""


class ChangedError(Exception):
    """What is there is not what the precondition of a write asked for."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a place says about an object.

    Attributes:
        size: bytes; None when it does not say.
        media_type: as it was declared; None when it was not.
        generation: what changes with the content and only grows; None when there is no such thing.
        metadata: what was written along; empty where the place cannot keep any.
    """

    size: int | None = None
    media_type: str | None = None
    generation: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Object:
    """An object that was read."""

    data: bytes
    facts: Facts


class Place(Protocol):
    """Somewhere that URIs of one scheme lead to.

    Every call raises `Problem` for what stays as it is (`object_not_found`, `object_forbidden`,
    `object_too_large`, `unsupported_uri`), and `TransientError` for what may be gone at the next
    attempt.
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
            metadata: goes along, where the place can keep it.
            if_generation_match: what has to be there before: 0 for nothing; None for anything.

        Raises:
            ChangedError: something else is there.
        """
        ...

    async def delete(self, uri: str) -> None:
        """Delete an object; there may be none."""
        ...

    async def close(self) -> None:
        """Close what it holds open."""
        ...


def too_large(limit: int, value: int | None = None) -> Problem:
    """The problem of an object with more bytes than allowed; how many, where it is known."""
    problem = Problem(
        "object_too_large", f"What is behind the URI is larger than {limit} bytes.", limit=limit
    )
    if value is not None:
        problem.extra["value"] = value
    return problem


def not_found(detail: str = "There is nothing at the URI.") -> Problem:
    """The problem of an object that is not there."""
    return ObjectNotFoundError(detail)


@contextmanager
def missing_is_fine() -> Iterator[None]:
    """Pass over that something is not there."""
    try:
        yield
    except Problem as problem:
        if problem.code != "object_not_found":
            raise


def forbidden(detail: str) -> Problem:
    """The problem of an object that may not be read or written."""
    return Problem("object_forbidden", detail)
