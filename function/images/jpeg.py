"""What a JPEG's markers say: how many passes its pixels take, and whether its end is there.

The walk goes from marker to marker as a decoder does, so that neither what segments hold (a
thumbnail, a depth map) nor what lies behind the end (a film, as motion photos have) is taken for
the picture's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

END = b"\xff\xd9"

_SCAN, _EOI, _SOI = 0xDA, 0xD9, 0xD8
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_ALONE = {0x01, _SOI, *range(0xD0, 0xD8)}
_MARKER = re.compile(rb"\xff+([^\x00\xff])")
_AFTER_SCAN = re.compile(rb"\xff+([\x01-\xcf\xd8-\xfe])")  # no stuffed byte, no restart


@dataclass(frozen=True, slots=True)
class Jpeg:
    """A JPEG by its markers.

    Attributes:
        scans: passes over the pixels; 1 where it is not progressive, about 10 where it is.
        ended: whether the marker of its end is there.
        refined: whether all bits of each coefficient come in some scan.
    """

    scans: int
    ended: bool
    refined: bool


def jpeg(data: bytes) -> Jpeg:
    """Walk over a JPEG.

    Args:
        data: the file, which begins as a JPEG does.
    """
    scans, at, components = 0, 2, 0
    coarse: dict[tuple[int, int], int] = {}  # bits that are missing, by component and coefficient
    while match := (_AFTER_SCAN if scans else _MARKER).search(data, at):
        code, at = match[1][0], match.end()
        if code == _EOI:
            return Jpeg(scans, ended=True, refined=_whole(coarse, components))
        if code in _ALONE:
            continue
        length = int.from_bytes(data[at : at + 2], "big")
        if code == _SCAN:
            scans += 1
            _refine(coarse, data[at + 2 : at + length])
        elif code in _FRAMES:
            components = max(data[at + 7 : at + 8], default=0)
        at += max(length, 2)
    return Jpeg(scans, ended=False, refined=_whole(coarse, components))


def _refine(coarse: dict[tuple[int, int], int], head: bytes) -> None:
    """Note which bits a scan brings, by its head."""
    count = head[0] if head else 0
    if len(head) < 4 + 2 * count:
        return
    first, last, bits = head[1 + 2 * count : 4 + 2 * count]
    for component in head[1 : 1 + 2 * count : 2]:
        for place in range(first, min(last, 63) + 1):
            coarse[component, place] = bits & 15


def _whole(coarse: dict[tuple[int, int], int], components: int) -> bool:
    """Whether each component has all of its 64 coefficients to the last bit."""
    return len(coarse) == 64 * components > 0 and not any(coarse.values())
