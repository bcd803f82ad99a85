"""XMP in a WebP: a chunk `XMP ` after the picture, and a flag for it (WebP's container, RFC 9649).

C2PA has a chunk `C2PA`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.trust.marking.containers.carried import (
    MOST_BYTES,
    MOST_PACKETS,
    MOST_STEPS,
    Buffer,
    Carried,
    little,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_XMP, _ALPHA = 4, 16
"""Of the flags of a WebP."""


def carried(data: Buffer) -> Carried:
    """What a WebP carries."""
    packets: list[bytes] = []
    manifest = False
    for kind, start, end in _chunks(data):
        if kind == b"XMP " and end - start <= MOST_BYTES and len(packets) < MOST_PACKETS:
            packets.append(data[start + 8 : end])
        manifest |= kind == b"C2PA"
    return Carried(tuple(packets), manifest=manifest)


def put(data: bytes, packet: bytes) -> bytes:
    """The WebP with this packet in place of any that it had.

    Raises:
        ValueError: it has no picture.
    """
    chunks = [
        (kind, data[start + 8 : end]) for kind, start, end in _chunks(data) if kind != b"XMP "
    ]
    kind, head = next(iter(chunks), (b"", b""))
    if kind == b"VP8X" and len(head) >= 10:
        chunks[0] = kind, bytes([head[0] | _XMP]) + head[1:]
    else:
        chunks.insert(0, (b"VP8X", _extended(kind, head)))
    body = b"WEBP" + b"".join(_chunk(*each) for each in (*chunks, (b"XMP ", packet)))
    return _chunk(b"RIFF", body)


def _extended(kind: bytes, head: bytes) -> bytes:
    """The head of the extended form, made from the head of the only chunk of the simple one."""
    if kind == b"VP8L" and head[:1] == b"\x2f":
        bits = little(head, 1, 4)
        width, height, flags = bits & 0x3FFF, bits >> 14 & 0x3FFF, _ALPHA * (bits >> 28 & 1)
    elif kind == b"VP8 " and head[3:6] == b"\x9d\x01\x2a":
        width, height = (little(head, 6, 2) & 0x3FFF) - 1, (little(head, 8, 2) & 0x3FFF) - 1
        flags = 0
    else:
        raise ValueError("a WebP without a picture")
    sides = max(width, 0).to_bytes(3, "little") + max(height, 0).to_bytes(3, "little")
    return bytes([flags | _XMP, 0, 0, 0]) + sides


def _chunks(data: Buffer) -> Iterator[tuple[bytes, int, int]]:
    """(kind, start, end) of each whole chunk, without the byte that makes it even."""
    at, last = 12, min(len(data), 8 + little(data, 4, 4))
    for _ in range(MOST_STEPS):
        end = at + 8 + little(data, at + 4, 4)
        if at + 8 > last or end > last:
            return
        yield data[at : at + 4], at, end
        at = end + (end - at) % 2


def _chunk(kind: bytes, content: bytes) -> bytes:
    return kind + len(content).to_bytes(4, "little") + content + bytes(len(content) % 2)
