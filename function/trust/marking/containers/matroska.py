"""XMP in a Matroska or WebM file: a tag of the whole file. Ember reads it here.

Matroska has no place of its own for XMP, so the packet is the text of a tag `XMP`. China's practice
guide for videos (TC260-PG-20257A) wants its label as a tag `AIGC` of the file. Both are written
with the head of the file (`metadata.tags`). There is no C2PA in these files.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from function.trust.marking.containers.carried import (
    MOST_BYTES,
    MOST_PACKETS,
    MOST_STEPS,
    Buffer,
    Carried,
    Span,
    big,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

XMP, LABEL = "XMP", "AIGC"
"""The names of the tags."""

_SEGMENT, _CLUSTER, _TAGS, _TAG, _SIMPLE = 0x18538067, 0x1F43B675, 0x1254C367, 0x7373, 0x67C8
_NAME, _TEXT = 0x45A3, 0x4487
_MOST_TAGS, _MOST_TEXTS = 16, 1024
_MOST_WALKED = 4 << 20
"""Bytes of a list of tags."""

Element = tuple[int, int, int]
"""(number, start, end) of the content of an element."""


def carried(data: Buffer) -> Carried:
    """What such a file carries."""
    packets, labels = [], []
    for start, end in islice(_tags(data), _MOST_TAGS):
        for name, text in islice(_texts(data, start, end), _MOST_TEXTS):
            if name == XMP:
                packets.append(text)
            elif name == LABEL:
                labels.append(text.decode("utf-8", "replace"))
    return Carried(tuple(packets[:MOST_PACKETS]), tuple(labels[:MOST_PACKETS]))


def _tags(data: Buffer) -> Iterator[Span]:
    """Where the contents of the lists of tags are."""
    for number, start, end in islice(_elements(data, 0, len(data)), _MOST_TAGS):
        for inner, first, last in _elements(data, start, end) if number == _SEGMENT else ():
            if inner == _TAGS:
                yield first, min(last, first + _MOST_WALKED)


def _texts(data: Buffer, start: int, end: int) -> Iterator[tuple[str, bytes]]:
    """(name, text) of each tag."""
    for tag, first, last in _elements(data, start, end):
        for simple, begin, until in _elements(data, first, last) if tag == _TAG else ():
            if simple == _SIMPLE:
                own = {number: (at, stop) for number, at, stop in _elements(data, begin, until)}
                name, text = (own.get(number, (0, 0)) for number in (_NAME, _TEXT))
                if name[1] - name[0] <= 64 and text[1] - text[0] <= MOST_BYTES:
                    yield (
                        data[slice(*name)].decode("utf-8", "replace"),
                        data[slice(*text)].rstrip(b"\0"),
                    )


def _elements(data: Buffer, start: int, end: int) -> Iterator[Element]:
    """The elements between two places, as far as they are sane.

    One whose size nobody knew when it was written reaches to the end. A cluster of that kind is
    walked through, as what follows it does not say where it begins.
    """
    for _ in range(MOST_STEPS):
        wide = _width(data, start, 4)
        number, start = big(data, start, wide), start + wide
        size_wide = _width(data, start, 8)
        if not wide or not size_wide or start + size_wide > end:
            return
        size = big(data, start, size_wide) & (1 << 7 * size_wide) - 1
        start += size_wide
        if size == (1 << 7 * size_wide) - 1:
            if number == _CLUSTER:
                continue
            size = end - start
        yield number, start, min(start + size, end)
        start += size


def _width(data: Buffer, at: int, most: int) -> int:
    """Bytes of the number at a place, of which the first says how many there are; 0 for none."""
    wide = 9 - big(data, at, 1).bit_length()
    return wide if wide <= most else 0
