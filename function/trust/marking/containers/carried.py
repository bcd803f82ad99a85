"""What a file carries of its making, and what the readers of all kinds of files share."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Buffer = bytes | mmap.mmap
"""A whole file: its bytes, or a map of it of which only what is looked at is read."""

MOST_BYTES = 1 << 20
"""Of one packet; what somebody else says of layers and edits may be longer, and is not read."""
MOST_PACKETS = 8
"""Of one file that are looked at."""
MOST_STEPS = 200_000
"""Segments, chunks, boxes or elements that are looked at before a walk ends."""

Span = tuple[int, int]
"""Where something begins and ends in a file."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What a file carries.

    Attributes:
        packets: XMP packets, as they are in the file.
        labels: texts of labels of China's standard that stand beside them, as videos have it.
        manifest: whether there is a C2PA manifest, be it valid or not.
    """

    packets: tuple[bytes, ...] = ()
    labels: tuple[str, ...] = ()
    manifest: bool = False


def spliced(data: bytes, at: int, new: bytes, gone: Iterable[Span] = ()) -> bytes:
    """The file with something put in at a place, and without some parts.

    Args:
        data: the file.
        at: where the new bytes begin, in none of the parts.
        new: what is put in.
        gone: parts that are left out, in the order of the file.

    Raises:
        ValueError: there is no such place.
    """
    view, parts, done = memoryview(data), [], 0
    for start, end in (*gone, (len(data), len(data))):
        if done <= at <= start:
            parts += [view[done:at], memoryview(new)]
            done, at = at, -1
        parts.append(view[done:start])
        done = end
    if at >= 0:
        raise ValueError("the file is cut short")
    return b"".join(parts)


def big(data: Buffer, at: int, size: int) -> int:
    """The number at a place, the high byte first; short where the file ends."""
    return int.from_bytes(data[at : at + size], "big")


def little(data: Buffer, at: int, size: int) -> int:
    """As `big`, the low byte first."""
    return int.from_bytes(data[at : at + size], "little")
