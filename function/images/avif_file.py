"""How many pixels the coded streams of an AVIF have, whatever its boxes say of them.

A decoder makes room for what a stream says, and makes it as large as the box `ispe` says after
that. So that box alone bounds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.images import av1

if TYPE_CHECKING:
    from collections.abc import Iterator

_BESIDE = 3
"""How many times the pixels of the picture an honest file may have in all: transparency, a map of
its brightness and thumbnails are apart from it."""
_TO_SAMPLES = b"trak", b"mdia", b"minf", b"stbl"
_MOST_BOXES, _MOST_PARTS = 4096, 64
_MOST_STREAMS = 1024
_MOST_READ = 3
"""How many times the file its streams may be in all: a track often has the bytes of an item."""


def pixels(data: bytes) -> int:
    """Pixels of the largest stream, or of a part of all of them where they are many.

    Args:
        data: the file.

    Returns:
        The number; 0 when there is no stream, or more of them than in any photo.
    """
    try:
        found = [av1.largest(stream) for stream in _streams(data)]
    except ValueError:
        return 0
    return max(max(found, default=0), sum(found) // _BESIDE)


def _streams(data: bytes) -> Iterator[bytes]:
    """What is decoded for the first picture: each coded item, and the first sample of each track.

    Raises:
        ValueError: there are too many, or they overlap again and again.
    """
    streams = read = 0
    boxes = [box for box in _boxes(data, 0, len(data)) if box[0] in {b"meta", b"moov"}]
    if len({kind for kind, *_ in boxes}) < len(boxes):
        raise ValueError("a box is there twice")
    for kind, start, end in boxes:
        is_items = kind == b"meta"
        for parts in _items(data, start + 4, end) if is_items else _samples(data, start, end):
            streams, read = streams + 1, read + sum(size for _, size in parts)
            if streams > _MOST_STREAMS or read > _MOST_READ * len(data):
                raise ValueError("too many streams")
            yield b"".join(data[at : at + size] for at, size in parts)


def _items(data: bytes, start: int, end: int) -> Iterator[list[tuple[int, int]]]:
    """(start, size) of the parts of each coded item of a `meta`."""
    ids: set[int] = set()
    idat, places = end, None
    for kind, begin, until in _boxes(data, start, end):
        if kind == b"iinf":
            skip = 6 if data[begin : begin + 1] == b"\0" else 8
            for _, at, _ in _boxes(data, begin + skip, until):
                wide = 4 if data[at : at + 1] == b"\3" else 2
                if data[at + wide + 6 : at + wide + 10] == b"av01":
                    ids.add(_big(data, at + 4, wide))
        elif kind == b"idat":
            idat = begin
        elif kind == b"iloc":
            places = begin
    if places is not None:
        for id_, inside, extents in _places(data, places):
            if id_ in ids:
                yield [(at + idat * inside, size) for at, size in extents]


def _places(data: bytes, at: int) -> Iterator[tuple[int, bool, list[tuple[int, int]]]]:
    """Of each item of an `iloc`: its number, whether it is in `idat`, its parts as in `_items`."""
    version, sizes = _big(data, at, 1), _big(data, at + 4, 2)
    offset, length, base, index = (sizes >> shift & 15 for shift in (12, 8, 4, 0))
    index *= version > 0
    wide = 4 if version == 2 else 2
    count, at = _big(data, at + 6, wide), at + 6 + wide
    if count > _MOST_BOXES:
        raise ValueError("too many items")
    for _ in range(count):
        id_, at = _big(data, at, wide), at + wide
        inside = version > 0 and _big(data, at, 2) & 15 == 1
        at += 2 * (version > 0) + 2
        first, parts, at = _big(data, at, base), _big(data, at + base, 2), at + base + 2
        if parts > _MOST_PARTS:
            raise ValueError("too many parts")
        extents = []
        for _ in range(parts):
            at += index
            size = _big(data, at + offset, length)
            size = min(size or len(data), len(data))
            extents.append((first + _big(data, at, offset), size))
            at += offset + length
        yield id_, inside, extents


def _samples(
    data: bytes, start: int, end: int, path: tuple[bytes, ...] = _TO_SAMPLES
) -> Iterator[list[tuple[int, int]]]:
    """(start, size) of the first sample of each track of a `moov`."""
    places, sizes = [], []
    for kind, begin, until in _boxes(data, start, end):
        if path and kind == path[0]:
            yield from _samples(data, begin, until, path[1:])
        elif kind in {b"stco", b"co64"}:
            places.append(_big(data, begin + 8, 4 if kind == b"stco" else 8))
        elif kind == b"stsz":
            sizes.append(_big(data, begin + 4, 4) or _big(data, begin + 12, 4))
    if sizes:
        yield from ([(at, max(sizes))] for at in places)


def _boxes(data: bytes, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """(kind, start, end) of the content of each box between two places."""
    boxes = 0
    while start + 8 <= end:
        if (boxes := boxes + 1) > _MOST_BOXES:
            raise ValueError("too many boxes")
        size, kind, head = _big(data, start, 4), data[start + 4 : start + 8], 8
        if size == 1:
            size, head = _big(data, start + 8, 8), 16
        if size == 0:
            size = end - start
        if size < head:
            return
        yield kind, start + head, min(start + size, end)
        start += size


def _big(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")
