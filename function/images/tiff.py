"""Which image of a TIFF is the picture: cameras and editors put a thumbnail before it.

Only directories are read here; a file may have many, which point at each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Order = Literal["little", "big"]

_KIND, _OLD_KIND, _WIDTH, _HEIGHT, _COMPRESSION, _LIGHT = 254, 255, 256, 257, 259, 262
_INNER, _DNG = 330, 50706
_REDUCED, _MASK, _OLD_REDUCED = 1, 4, 2
_SENSOR_LIGHTS = {32803, 34892}
_SENSOR_COMPRESSIONS = {32767, 32769, 32770, 34713, 65000, 65535}
_SIZES = {1: 1, 3: 2, 4: 4, 13: 4, 16: 8, 18: 8}
"""Bytes of a value, by its type; of those types that the tags above have."""
_MOST = 64
"""Directories; no photo has as many."""


@dataclass(frozen=True, slots=True)
class Directory:
    """One image of the file.

    Attributes:
        at: where its directory is.
        pixels: how many it has.
        reduced: whether it stands for another image of the file, smaller or as a mask.
        sensor: whether it is what a camera's sensor has seen, which is no picture yet.
        inner: whether another directory names it as a part of its own.
    """

    at: int
    pixels: int
    reduced: bool
    sensor: bool
    inner: bool


def is_raw(data: bytes) -> bool:
    """Whether a TIFF is a camera raw: DNG, NEF, ARW, CR2 and their relatives."""
    return data[8:10] == b"CR" or any(each.sensor for each in directories(data))


def with_picture_first(data: bytes) -> bytes:
    """The file, or one whose first image is the picture where that was another.

    Args:
        data: a TIFF that is no camera raw.
    """
    found = directories(data)
    if not found:
        return data
    first = found[0]
    others = [each for each in found[1:] if not each.reduced and (each.inner or first.reduced)]
    best = max(others, key=lambda each: each.pixels, default=first)
    if not first.reduced and best.pixels <= first.pixels:
        return data
    order, big = _layout(data)
    start, at = (8, best.at.to_bytes(8, order)) if big else (4, best.at.to_bytes(4, order))
    return data[:start] + at + data[start + len(at) :]


def directories(data: bytes) -> list[Directory]:
    """The images of a TIFF in the order of the file, each followed by those inside of it.

    Directories that cannot be read are left out.
    """
    order, big = _layout(data)
    found: dict[int, Directory] = {}
    waiting = [(_number(data, order, 8, 8) if big else _number(data, order, 4, 4), False)]
    while waiting and len(found) < _MOST:
        at, inner = waiting.pop()
        if at in found or not 8 <= at < len(data):
            continue
        tags, following = _tags(data, order, at, big=big)
        found[at] = _directory(at, tags, inner=inner)
        waiting += [(following, inner), *((each, True) for each in reversed(tags.get(_INNER, [])))]
    return list(found.values())


def _directory(at: int, tags: dict[int, list[int]], *, inner: bool) -> Directory:
    def one(tag: int) -> int:
        return next(iter(tags.get(tag, [])), 0)

    reduced = bool(one(_KIND) & (_REDUCED | _MASK)) or one(_OLD_KIND) == _OLD_REDUCED
    sensor = one(_LIGHT) in _SENSOR_LIGHTS or one(_COMPRESSION) in _SENSOR_COMPRESSIONS
    return Directory(at, one(_WIDTH) * one(_HEIGHT), reduced, sensor or _DNG in tags, inner)


def _tags(data: bytes, order: Order, at: int, *, big: bool) -> tuple[dict[int, list[int]], int]:
    """The values of the tags that matter, and where the next directory is."""
    head, entry, wide = (8, 20, 8) if big else (2, 12, 4)
    count = min(_number(data, order, at, head), len(data) // entry)
    found: dict[int, list[int]] = {}
    for start in range(at + head, at + head + count * entry, entry):
        tag = _number(data, order, start, 2)
        if tag in {_KIND, _OLD_KIND, _WIDTH, _HEIGHT, _COMPRESSION, _LIGHT, _INNER, _DNG}:
            found[tag] = list(_values(data, order, start, wide))
    return found, _number(data, order, at + head + count * entry, wide)


def _values(data: bytes, order: Order, entry: int, wide: int) -> Iterator[int]:
    """The first values of a tag."""
    size = _SIZES.get(_number(data, order, entry + 2, 2), 0)
    count = min(_number(data, order, entry + 4, wide), _MOST) if size else 0
    at = entry + 4 + wide
    if size * count > wide:
        at = _number(data, order, at, wide)
    for number in range(count):
        yield _number(data, order, at + size * number, size)


def _layout(data: bytes) -> tuple[Order, bool]:
    """The order of bytes, and whether it is a BigTIFF."""
    order: Order = "little" if data.startswith(b"II") else "big"
    return order, _number(data, order, 2, 2) == 43


def _number(data: bytes, order: Order, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], order)
