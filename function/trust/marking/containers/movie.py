"""XMP in an MP4 or a QuickTime file: a `uuid` box at its end.

That is where XMP, part 3, has it for MPEG-4. For QuickTime files it names `XMP_` in `moov.udta`,
which is read as well; there, writing would move all that comes after. China's practice guide for
videos (TC260-PG-20257A) wants its label under the key `AIGC` in `moov.udta.meta`, which is written
with the head of the file (`metadata.tags`).
"""

from __future__ import annotations

import mmap
import os
from itertools import islice
from typing import TYPE_CHECKING

from function.trust.marking.containers.boxes import (
    XMP,
    IsoBox,
    box,
    boxes,
    is_manifest,
    is_xmp,
    packet,
)
from function.trust.marking.containers.carried import (
    MOST_BYTES,
    MOST_PACKETS,
    Buffer,
    Carried,
    big,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedRandom
    from pathlib import Path

KEY = "AIGC"
"""The name of the label of China's standard."""

_UNFINISHED = bytes(4)
"""The kind of a box that is still being written."""
_MOST_KEYS = 256
_MOST_WALKED = 64 << 20
"""Bytes of a `moov`."""


def carried(data: Buffer) -> Carried:
    """What such a file carries."""
    packets: list[bytes] = []
    labels: list[str] = []
    manifest = False
    for each in _described(data):
        if each.kind == b"meta":
            labels += islice(_labels(data, each), MOST_PACKETS)
        elif each.kind == b"XMP_" and each.end - each.content <= MOST_BYTES:
            packets.append(data[each.content : each.end])
        elif is_xmp(data, each):
            packets.append(packet(data, each))
        manifest |= is_manifest(data, each)
    found = islice((each for each in packets if each), MOST_PACKETS)
    return Carried(tuple(found), tuple(labels[:MOST_PACKETS]), manifest)


def append(path: Path, xmp: bytes) -> None:
    """Put a packet at the end of a file, in place of any that it has at its top.

    Pictures and sound are not touched, and until the packet is whole its head is that of a box of
    no kind that reaches to the end of the file, which everybody skips: what is left after a crash
    plays in any case, and can be marked again.

    Raises:
        ValueError: it is not such a file, or is cut short.
    """
    with path.open("r+b") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = list(boxes(data))
            if not any(each.kind == b"moov" for each in found):
                raise ValueError("neither an MP4 nor a QuickTime file")
            old = [each for each in found if is_xmp(data, each)]
            last, size, open_end = found[-1], len(data), big(data, found[-1].start, 4) == 0
        end = last.end
        if last in old or last.kind == _UNFINISHED:
            old = [each for each in old if each is not last]
            end = last.start
        elif end != size:
            raise ValueError("the file is cut short")
        elif open_end:  # the last box reaches to the end of the file, wherever that is
            _write(file, last.start, (end - last.start).to_bytes(4, "big"))
        new = box(b"uuid", XMP + xmp)
        _write(file, end, bytes(8))
        file.truncate(end + 8)
        _write(file, end + 8, new[8:])
        _write(file, end, new[:8])
        for each in old:  # in the middle, where nothing can be taken out
            _write(file, each.start + 4, b"free")
            _write(file, each.content, bytes(min(each.end - each.content, MOST_BYTES)))


def _write(file: BufferedRandom, at: int, data: bytes) -> None:
    """Write at a place, before anything that is written later."""
    file.seek(at)
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def _described(data: Buffer) -> Iterator[IsoBox]:
    """The boxes in which something can be said: at the top, in `moov`, in its `udta`."""
    for each in boxes(data):
        yield each
        if each.kind == b"moov":
            for inner in boxes(data, each.content, min(each.end, each.content + _MOST_WALKED)):
                yield inner
                if inner.kind == b"udta":
                    yield from boxes(data, inner.content, inner.end)


def _labels(data: Buffer, meta: IsoBox) -> Iterator[str]:
    """The texts under `KEY` in a `meta` box, which has keys and values apart."""
    start = meta.content  # QuickTime's has no version before the boxes in it
    start += 0 if data[start + 4 : start + 8] == b"hdlr" else 4
    wanted: set[int] = set()
    for each in boxes(data, start, meta.end):
        if each.kind == b"keys":
            wanted = set(_places(data, each))
        elif each.kind == b"ilst":
            for item in boxes(data, each.content, each.end):
                if int.from_bytes(item.kind, "big") in wanted:
                    for value in boxes(data, item.content, item.end):
                        if value.kind == b"data" and value.end - value.content <= MOST_BYTES:
                            yield data[value.content + 8 : value.end].decode("utf-8", "replace")


def _places(data: Buffer, keys: IsoBox) -> Iterator[int]:
    """The numbers of the keys with that name, which count from 1."""
    for number, each in enumerate(boxes(data, keys.content + 8, keys.end), 1):
        if number > _MOST_KEYS:
            return
        if data[each.content : min(each.end, each.content + 64)] == KEY.encode():
            yield number
