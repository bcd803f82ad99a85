"""XMP in a GIF: an application extension without parts (XMP, part 3, 1.1.2).

Readers that know nothing of XMP take its bytes for lengths of parts. A trailer of all lengths that
there are, from the largest down, leads each of them to the end, wherever it comes from.
C2PA has an extension `C2PA_GIF`.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from function.trust.marking.containers.carried import (
    MOST_BYTES,
    MOST_PACKETS,
    Buffer,
    Carried,
    Span,
    little,
    spliced,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_XMP, _C2PA = b"!\xff\x0bXMP DataXMP", b"!\xff\x0bC2PA_GIF"
_TRAILER = b"\1" + bytes(range(255, -1, -1)) + b"\0"
_EXTENSION, _IMAGE, _END = 0x21, 0x2C, 0x3B
_APPLICATION = 0xFF
_KNOWN = re.compile(rb"[!,;]")
_MOST_WALKED = 32 << 20
"""Bytes of a file in which extensions are looked for."""


def carried(data: Buffer) -> Carried:
    """What a GIF carries."""
    packets = [_packet(data, *span) for span in islice(_extensions(data, _XMP), MOST_PACKETS)]
    manifest = any(True for _ in _extensions(data, _C2PA))
    return Carried(tuple(each for each in packets if each), manifest=manifest)


def put(data: bytes, packet: bytes) -> bytes:
    """The GIF with this packet in place of any that it had.

    Args:
        data: the file.
        packet: in UTF-8 and without a zero byte, as this kind of file wants it.
    """
    gone = list(_extensions(data, _XMP))
    at = 13 + _table(data, 10)
    for start, end in _blocks(data):  # readers look for the number of loops before anything else
        if data[start] != _EXTENSION or data[start + 1] != _APPLICATION or (start, end) in gone:
            break
        at = end
    return b"GIF89a" + spliced(data, at, _XMP + packet + _TRAILER, gone)[6:]


def _packet(data: Buffer, start: int, end: int) -> bytes:
    """The packet of an extension; of the wrong form with parts as well, which some write."""
    start += len(_XMP)
    if end - start > MOST_BYTES:
        return b""
    if data[end - len(_TRAILER) : end] == _TRAILER:
        return data[start : end - len(_TRAILER)]
    parts = []
    while start < end and data[start]:
        parts.append(data[start + 1 : start + 1 + data[start]])
        start += 1 + data[start]
    return b"".join(parts)


def _extensions(data: Buffer, head: bytes) -> Iterator[Span]:
    """Extensions that begin so; the file is walked only where these bytes are in it at all."""
    if data.find(head) >= 0:
        yield from (span for span in _blocks(data) if data[span[0] : span[0] + len(head)] == head)


def _blocks(data: Buffer) -> Iterator[Span]:
    """Where each whole extension and image is."""
    at, last = 13 + _table(data, 10), min(len(data), _MOST_WALKED)
    while at < last and data[at] != _END:
        start = at
        if data[at] == _EXTENSION:
            at = _parts_end(data, at + 2)
        elif data[at] == _IMAGE:
            at = _parts_end(data, at + 11 + _table(data, at + 9))
        else:  # stray bytes, over which decoders go as well
            known = _KNOWN.search(data, at)
            at = known.start() if known else last
            continue
        if at <= last:
            yield start, at


def _table(data: Buffer, at: int) -> int:
    """Bytes of the table of colours that the flags at this place announce."""
    flags = little(data, at, 1)
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _parts_end(data: Buffer, at: int) -> int:
    """Where a row of parts ends, after the empty one that closes it."""
    last = min(len(data), _MOST_WALKED)
    while at < last and data[at]:
        at += data[at] + 1
    return at + 1
