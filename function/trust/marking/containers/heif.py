"""XMP in an AVIF or a HEIC: an item of the type `mime` that describes the picture.

As HEIF has it (ISO/IEC 23008-12, annex A.3). The packet itself comes into a `mdat` box of its own
at the end of the file; the list of items, which stands before the pixels, grows, so that all places
in it move.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from function.trust.marking.containers.boxes import IsoBox, box, boxes, is_manifest, is_xmp
from function.trust.marking.containers.boxes import packet as uuid_packet
from function.trust.marking.containers.carried import (
    MOST_BYTES,
    MOST_PACKETS,
    Buffer,
    Carried,
    Span,
    big,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_TYPE = b"application/rdf+xml\0"
_MOST_ITEMS, _MOST_PARTS = 4096, 64
_IN_FILE, _IN_IDAT = 0, 1
"""What the places of an item count from."""


@dataclass(frozen=True, slots=True)
class _Item:
    """Where one item is.

    Attributes:
        number: its own.
        method: what its places count from.
        source: 0, or another file that holds it.
        parts: (place, size) of each of its parts.
    """

    number: int
    method: int
    source: int
    parts: tuple[tuple[int, int], ...]


def carried(data: Buffer) -> Carried:
    """What such a file carries."""
    packets: list[bytes] = []
    manifest, meta = False, None
    for each in boxes(data):
        manifest |= is_manifest(data, each)
        if is_xmp(data, each) and len(packets) < MOST_PACKETS:
            packets.append(uuid_packet(data, each))
        elif each.kind == b"meta" and meta is None:
            meta = each
    if meta is not None:
        inside = {inner.kind: inner for inner in boxes(data, meta.content + 4, meta.end)}
        wanted = _numbers(data, inside.get(b"iinf"))
        with suppress(ValueError):
            items = _items(data, inside.get(b"iloc"))
            found = islice((each for each in items if each.number in wanted), MOST_PACKETS)
            packets += [_content(data, item, inside.get(b"idat")) for item in found]
    return Carried(tuple(each for each in packets if each), manifest=manifest)


def put(data: bytes, packet: bytes) -> bytes:
    """The file with this packet in place of any that it had.

    Raises:
        ValueError: it is a sequence, is cut short, or has its items in a way that nobody writes.
    """
    top = list(boxes(data))
    metas = [each for each in top if each.kind == b"meta"]
    if len(metas) != 1 or top[-1].end != len(data) or any(each.kind == b"moov" for each in top):
        raise ValueError("not a still picture, or cut short")
    meta, last = metas[0], top[-1]
    if not big(data, last.start, 4):
        raise ValueError("the last box is open, so that nothing can follow")
    inside = list(boxes(data, meta.content + 4, meta.end))
    first = {each.kind: each for each in reversed(inside)}
    if len(first) != len(inside) or not first.keys() >= {b"iinf", b"iloc", b"pitm"}:
        raise ValueError("a list of items is missing, or there twice")
    old = _numbers(data, first[b"iinf"])
    items = list(_items(data, first[b"iloc"]))
    pitm = first[b"pitm"].content
    primary = big(data, pitm + 4, 4 if big(data, pitm, 1) else 2)

    gone = {part for item in items if item.number in old for part in _spans(item)}
    body = bytearray(data)
    for at, size in gone:
        body[at : at + size] = bytes(min(size, len(data) - at))
    own = last.kind == b"mdat" and gone == {(last.content, last.end - last.content)}
    rest = bytes(body[meta.end : last.start if own else None])
    items = [item for item in items if item.number not in old]
    number = max((item.number for item in items), default=0) + 1
    if max(number, primary) > 0xFFFF:
        raise ValueError("too many items")

    def made(shift: int, place: int) -> bytes:
        """The list of items when what follows it moves by so much, and the packet is there."""
        new = _Item(number, _IN_FILE, 0, ((place, len(packet)),))
        contents = {
            b"iinf": _information(data, first[b"iinf"], old, number),
            b"iloc": _locations([*(_moved(item, meta.end, shift) for item in items), new]),
            b"iref": _references(data, first.get(b"iref"), old, number, primary),
        }
        order = [*first.values()][::-1]
        kept = [
            box(each.kind, contents[each.kind])
            if each.kind in contents
            else data[each.start : each.end]
            for each in order
        ]
        if b"iref" not in first:
            kept.append(box(b"iref", contents[b"iref"]))
        return box(b"meta", data[meta.content : meta.content + 4] + b"".join(kept))

    shift = len(made(0, 0)) - (meta.end - meta.start)
    place = meta.end + shift + len(rest) + 8
    return data[: meta.start] + made(shift, place) + rest + box(b"mdat", packet)


def _numbers(data: Buffer, iinf: IsoBox | None) -> set[int]:
    """The numbers of the items that are XMP packets."""
    return {number for _, number, is_packet in _described(data, iinf) if is_packet}


def _described(data: Buffer, iinf: IsoBox | None) -> Iterator[tuple[IsoBox, int, bool]]:
    """Of each item: its box in the list, its number, whether it is an XMP packet."""
    if iinf is None:
        return
    start = iinf.content + (8 if big(data, iinf.content, 1) else 6)
    for count, each in enumerate(boxes(data, start, iinf.end)):
        if count == _MOST_ITEMS:
            return
        wide = 4 if big(data, each.content, 1) == 3 else 2
        kind = each.content + 4 + wide + 2
        is_packet = data[kind : kind + 4] == b"mime" and (
            _TYPE in data[kind + 4 : min(each.end, kind + 256)]
        )
        yield each, big(data, each.content + 4, wide), is_packet


def _items(data: Buffer, iloc: IsoBox | None) -> Iterator[_Item]:
    """Where each item is.

    Raises:
        ValueError: there are too many, or their places are counted from other items.
    """
    if iloc is None:
        return
    at = iloc.content
    version, sizes = big(data, at, 1), big(data, at + 4, 2)
    offset, length, base, index = (sizes >> shift & 15 for shift in (12, 8, 4, 0))
    wide = 4 if version == 2 else 2
    count, at = big(data, at + 6, wide), at + 6 + wide
    if version > 2 or count > _MOST_ITEMS or (version and index):
        raise ValueError("items in a way that nobody writes")
    for _ in range(count):
        number, at = big(data, at, wide), at + wide
        method, at = (big(data, at, 2) & 15, at + 2) if version else (_IN_FILE, at)
        source, first, parts = (
            big(data, at, 2),
            big(data, at + 2, base),
            big(data, at + 2 + base, 2),
        )
        at += 4 + base
        if parts > _MOST_PARTS or method > _IN_IDAT:
            raise ValueError("items in a way that nobody writes")
        places = []
        for _ in range(parts):
            places.append((first + big(data, at, offset), big(data, at + offset, length)))
            at += offset + length
        yield _Item(number, method, source, tuple(places))


def _content(data: Buffer, item: _Item, idat: IsoBox | None) -> bytes:
    """The bytes of an item; none where it is too long or elsewhere."""
    if item.source or sum(size for _, size in item.parts) > MOST_BYTES:
        return b""
    base = 0
    if item.method == _IN_IDAT:
        if idat is None:
            return b""
        base = idat.content
    return b"".join(data[base + at : base + at + size] for at, size in item.parts)


def _spans(item: _Item) -> tuple[Span, ...]:
    """The parts of an item that are in the file itself."""
    return () if item.method or item.source else item.parts


def _moved(item: _Item, end: int, shift: int) -> _Item:
    """An item when all that follows a place in the file moves."""
    if item.method or item.source:
        return item
    if any(size == 0 for _, size in item.parts):
        raise ValueError("an item as long as the file")
    parts = tuple((at + shift if at >= end else at, size) for at, size in item.parts)
    return replace(item, parts=parts)


def _information(data: bytes, iinf: IsoBox, old: set[int], number: int) -> bytes:
    """The content of `iinf` with the new item in place of the old ones."""
    kept = [
        data[each.start : each.end] for each, own, _ in _described(data, iinf) if own not in old
    ]
    new = bytes([2, 0, 0, 0]) + number.to_bytes(2, "big") + b"\0\0mime\0" + _TYPE
    head = data[iinf.content : iinf.content + 4]
    count = (len(kept) + 1).to_bytes(4 if any(head[:1]) else 2, "big")
    return head + count + b"".join(kept) + box(b"infe", new)


def _locations(items: list[_Item]) -> bytes:
    """The content of `iloc`, with four bytes for each place and size."""
    version = 2 if any(item.number > 0xFFFF for item in items) else 1
    wide = 4 if version == 2 else 2
    parts = [bytes([version, 0, 0, 0, 0x44, 0]), len(items).to_bytes(wide, "big")]
    for item in items:
        head = item.number.to_bytes(wide, "big") + item.method.to_bytes(2, "big")
        parts.append(head + item.source.to_bytes(2, "big") + len(item.parts).to_bytes(2, "big"))
        try:
            parts += [each.to_bytes(4, "big") for part in item.parts for each in part]
        except OverflowError:
            raise ValueError("a picture of more than 4 GiB") from None
    return b"".join(parts)


def _references(
    data: bytes, iref: IsoBox | None, old: set[int], number: int, primary: int
) -> bytes:
    """The content of `iref`, in which the new item describes the picture, and no old one does."""
    head = bytes(4) if iref is None else data[iref.content : iref.content + 4]
    wide = 4 if any(head[:1]) else 2
    kept = [
        data[each.start : each.end]
        for each in (boxes(data, iref.content + 4, iref.end) if iref else ())
        if big(data, each.content, wide) not in old
    ]
    new = number.to_bytes(wide, "big") + b"\0\1" + primary.to_bytes(wide, "big")
    return head + b"".join(kept) + box(b"cdsc", new)
