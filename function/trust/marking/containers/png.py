"""XMP in a PNG: an iTXt chunk with the keyword `XML:com.adobe.xmp` (XMP, part 3, 1.1.5).

C2PA has a chunk `caBX`.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from function.trust.marking.containers.carried import (
    MOST_BYTES,
    MOST_PACKETS,
    MOST_STEPS,
    Buffer,
    Carried,
    big,
    spliced,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEYWORD = b"XML:com.adobe.xmp\0"
_HEAD_END = 33
"""Where the first chunk ends, which is IHDR in every PNG."""


def carried(data: Buffer) -> Carried:
    """What a PNG carries."""
    packets: list[bytes] = []
    manifest = False
    for kind, start, end in _chunks(data):
        if len(packets) < MOST_PACKETS and _is_xmp(data, kind, start):
            packets.append(_text(data[start + 8 : min(end - 4, start + MOST_BYTES)]))
        manifest |= kind == b"caBX"
    return Carried(tuple(each for each in packets if each), manifest=manifest)


def put(data: bytes, packet: bytes) -> bytes:
    """The PNG with this packet in place of any that it had."""
    gone = [(start, end) for kind, start, end in _chunks(data) if _is_xmp(data, kind, start)]
    content = b"iTXt" + _KEYWORD + bytes(4) + packet
    checksum = zlib.crc32(content).to_bytes(4, "big")
    chunk = (len(content) - 4).to_bytes(4, "big") + content + checksum
    return spliced(data, _HEAD_END, chunk, gone)


def _is_xmp(data: Buffer, kind: bytes, start: int) -> bool:
    return kind == b"iTXt" and data[start + 8 : start + 8 + len(_KEYWORD)] == _KEYWORD


def _text(content: bytes) -> bytes:
    """The text of an iTXt chunk; empty where it is damaged or too long."""
    compressed, rest = content[len(_KEYWORD) : len(_KEYWORD) + 1], content[len(_KEYWORD) + 2 :]
    text = rest.split(b"\0", 2)[-1] if rest.count(b"\0") > 1 else b""
    if compressed != b"\1":
        return text
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(text, MOST_BYTES)
    except zlib.error:
        return b""
    return text if unpacker.eof else b""


def _chunks(data: Buffer) -> Iterator[tuple[bytes, int, int]]:
    """(kind, start, end) of each whole chunk."""
    at = 8
    for _ in range(MOST_STEPS):
        end = at + 12 + big(data, at, 4)
        if end > len(data):
            return
        yield data[at + 4 : at + 8], at, end
        at = end
