"""The boxes of an ISO media file (ISO/IEC 14496-12): MP4, QuickTime, AVIF and HEIC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.trust.marking.containers.carried import MOST_BYTES, MOST_STEPS, Buffer, big

if TYPE_CHECKING:
    from collections.abc import Iterator

XMP = bytes.fromhex("be7acfcb97a942e89c71999491e3afac")
"""What a `uuid` box of an XMP packet begins with (XMP, part 3, 1.2.6)."""

_C2PA = bytes.fromhex("d8fec3d61b0e483c92975828877ec481")


@dataclass(frozen=True, slots=True)
class IsoBox:
    """One box.

    Attributes:
        kind: its four letters.
        start: where its head begins.
        content: where its content begins.
        end: where it ends; past the end of a file that is cut short.
    """

    kind: bytes
    start: int
    content: int
    end: int


def boxes(data: Buffer, start: int = 0, end: int | None = None) -> Iterator[IsoBox]:
    """The boxes between two places, as far as they are sane."""
    end = len(data) if end is None else min(end, len(data))
    for _ in range(MOST_STEPS):
        if start + 8 > end:
            return
        size, head = big(data, start, 4), 8
        if size == 1:
            size, head = big(data, start + 8, 8), 16
        if size == 0:
            size = end - start
        if size < head:
            return
        yield IsoBox(data[start + 4 : start + 8], start, start + head, start + size)
        start += size


def box(kind: bytes, content: bytes) -> bytes:
    """A box with this content, which is shorter than 4 GiB."""
    return (8 + len(content)).to_bytes(4, "big") + kind + content


def is_xmp(data: Buffer, each: IsoBox) -> bool:
    """Whether a box holds an XMP packet."""
    return each.kind == b"uuid" and data[each.content : each.content + 16] == XMP


def is_manifest(data: Buffer, each: IsoBox) -> bool:
    """Whether a box holds a C2PA manifest."""
    return each.kind == b"uuid" and data[each.content : each.content + 16] == _C2PA


def packet(data: Buffer, each: IsoBox) -> bytes:
    """The packet of such a box; empty where it is too long or cut short."""
    whole = each.end - each.content - 16 <= MOST_BYTES and each.end <= len(data)
    return data[each.content + 16 : each.end] if whole else b""
