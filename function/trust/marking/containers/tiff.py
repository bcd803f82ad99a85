"""XMP in a TIFF: tag 700 of its first directory (XMP, part 3, 1.1.8). Ember only reads it.

C2PA has tag 52545.
"""

from __future__ import annotations

from typing import Literal

from function.trust.marking.containers.carried import MOST_BYTES, Buffer, Carried

_XMP, _C2PA = 700, 52545
_BYTE, _UNDEFINED = 1, 7
_MOST_TAGS = 4096


def carried(data: Buffer) -> Carried:
    """What a TIFF carries."""
    order: Literal["little", "big"] = "little" if data[:1] == b"I" else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], order)

    wide = number(2, 2) == 43
    head, entry, word = (8, 20, 8) if wide else (2, 12, 4)
    start = number(8, 8) if wide else number(4, 4)
    packets: list[bytes] = []
    manifest = False
    for index in range(min(number(start, head), _MOST_TAGS)):
        at = start + head + index * entry
        tag, kind, size = number(at, 2), number(at + 2, 2), number(at + 4, word)
        manifest |= tag == _C2PA
        usable = kind in {_BYTE, _UNDEFINED} and word < size <= MOST_BYTES
        if tag == _XMP and usable and not packets:
            place = number(at + 4 + word, word)
            packets.append(data[place : place + size])
    return Carried(tuple(packets), manifest=manifest)
