"""Parts of files (RFC 9110, section 14): a player that jumps asks for the rest of a clip only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import hdrs

from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

_RANGE = re.compile(r"bytes=\s*([0-9]{0,18})-([0-9]{0,18})\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes from `first` to `last`, both included, of `size`."""

    first: int
    last: int
    size: int

    @property
    def length(self) -> int:
        """How many they are."""
        return self.last - self.first + 1

    @property
    def headers(self) -> dict[str, str]:
        """Of an answer that has only them."""
        return {hdrs.CONTENT_RANGE: f"bytes {self.first}-{self.last}/{self.size}"}


def wanted(headers: Mapping[str, str], size: int, etag: str) -> Part | None:
    """The part of a file that a request asks for; None for all of it.

    All of it is also the answer to what is not understood, to several parts at once, and where
    `If-Range` names another content than there is.

    Args:
        headers: of the request.
        size: bytes of the file.
        etag: what `If-Range` names this content by, with its quotes.

    Raises:
        Problem: `range_not_satisfiable`.
    """
    match = _RANGE.fullmatch(headers.get(hdrs.RANGE, ""))
    if not match or headers.get(hdrs.IF_RANGE, etag) != etag:
        return None
    first, last = match[1], match[2]
    if first:
        begin, end = int(first), min(int(last), size - 1) if last else size - 1
    else:
        begin, end = max(0, size - int(last or 0)), size - 1  # so many from the end
    if not (first or last) or (first and last and int(last) < int(first)):
        return None
    if begin > end:
        raise Problem(
            "range_not_satisfiable",
            f"The file has {size} bytes, and none of those that are asked for.",
            headers={hdrs.CONTENT_RANGE: f"bytes */{size}"},
            limit=size,
        )
    return Part(begin, end, size)


async def cut(pieces: AsyncIterator[bytes], part: Part) -> AsyncIterator[bytes]:
    """The bytes of a part, out of all pieces of a file in order."""
    at = 0
    async for piece in pieces:
        begin, end = max(part.first - at, 0), min(part.last + 1 - at, len(piece))
        if begin < end:
            yield piece[begin:end]
        at += len(piece)
        if at > part.last:
            return
