"""XMP in a JPEG: an APP1 segment after those of JFIF and EXIF (XMP, part 3, 1.1.3).

What does not fit into one segment stands in further ones ("extended XMP"), which are not read: they
hold depth maps and copies of edits. C2PA has its boxes in APP11 (ISO/IEC 19566-5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.trust.marking.containers.carried import (
    MOST_PACKETS,
    MOST_STEPS,
    Buffer,
    Carried,
    big,
    spliced,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_PACKET = 65_502
"""Bytes of the packet of one segment."""

_MAIN, _MORE = b"http://ns.adobe.com/xap/1.0/\0", b"http://ns.adobe.com/xmp/extension/\0"
_EXIF = b"Exif\0"
_APP0, _APP1, _APP11, _SOS, _EOI = 0xE0, 0xE1, 0xEB, 0xDA, 0xD9
_ALONE = {0x01, *range(0xD0, 0xD9)}


def carried(data: Buffer) -> Carried:
    """What a JPEG carries."""
    packets: list[bytes] = []
    manifest = False
    for code, start, end in _segments(data):
        content = start + 4
        is_packet = code == _APP1 and data[content : content + len(_MAIN)] == _MAIN
        if is_packet and len(packets) < MOST_PACKETS:
            packets.append(data[content + len(_MAIN) : end])
        elif code == _APP11 and data[content : content + 2] == b"JP":
            manifest |= b"c2pa" in data[content : min(end, content + 64)]
    return Carried(tuple(packets), manifest=manifest)


def put(data: bytes, packet: bytes) -> bytes:
    """The JPEG with this packet in place of any that it had.

    Raises:
        ValueError: the packet is too long.
    """
    if len(packet) > MOST_PACKET:
        raise ValueError(f"{len(packet)} bytes of XMP do not fit into a segment")
    at, gone, leading = 2, [], True
    for code, start, end in _segments(data):
        head = data[start + 4 : start + 4 + len(_MORE)]
        if code == _APP1 and head.startswith((_MAIN, _MORE)):
            gone.append((start, end))
        elif leading and (code == _APP0 or (code == _APP1 and head.startswith(_EXIF))):
            at = end
        else:
            leading = False
    size = 2 + len(_MAIN) + len(packet)
    segment = bytes([0xFF, _APP1]) + size.to_bytes(2, "big") + _MAIN + packet
    return spliced(data, at, segment, gone)


def _segments(data: Buffer) -> Iterator[tuple[int, int, int]]:
    """(code, start, end) of each segment before the pixels."""
    at = 2
    for _ in range(MOST_STEPS):
        marker = data[at : at + 2]
        if len(marker) < 2 or marker[0] != 0xFF or marker[1] in {_SOS, _EOI}:
            return
        code = marker[1]
        if code == 0xFF:  # a byte that fills up
            at += 1
            continue
        if code in _ALONE:
            at += 2
            continue
        end = at + 2 + big(data, at + 2, 2)
        if not at + 4 <= end <= len(data):
            return
        yield code, at, end
        at = end
