"""Reading messages of protocol buffers by the numbers of their fields, without a schema.

Everything is a span of the file, so that what is not asked for is not read.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mmap
    from collections.abc import Sequence

    Span = tuple[int, int]
    Fields = defaultdict[int, list[int | Span]]


class MalformedMessageError(Exception):
    """These bytes are not the message that they should be."""


class MessageReader:
    """Takes messages apart.

    Args:
        data: the whole file.
    """

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def fields(self, span: Span) -> Fields:
        """The fields of the message in a span by their numbers, each with all that it was given.

        Raises:
            MalformedMessageError: there are none.
        """
        found: Fields = defaultdict(list)
        at, end = span
        while at < end:
            key, at = self._varint(at, end)
            number, wire = key >> 3, key & 7
            if wire == 0:
                value, at = self._varint(at, end)
                found[number].append(value)
                continue
            if wire == 2:
                length, at = self._varint(at, end)
            else:
                length = {1: 8, 5: 4}.get(wire, -1)
            if not number or length < 0:
                raise MalformedMessageError("it has no fields of protocol buffers")
            if at + length > end:
                raise MalformedMessageError("it is cut short")
            found[number].append((at, at + length))
            at += length
        return found

    def text(self, values: Sequence[int | Span]) -> str:
        """The last of some fields as text; empty without any."""
        if not values:
            return ""
        begin, end = as_span(values[-1])
        return self._data[begin:end].decode("utf-8")

    def numbers(self, value: int | Span) -> list[int]:
        """One number, or several that are packed."""
        if isinstance(value, int):
            return [value]
        (at, end), found = value, []
        while at < end:
            number, at = self._varint(at, end)
            found.append(number)
        return found

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 70, 7):
            if at >= end:
                raise MalformedMessageError("it is cut short")
            byte = self._data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
        raise MalformedMessageError("it has no fields of protocol buffers")


def as_span(value: int | Span) -> Span:
    """A field that must be a message or a text."""
    if isinstance(value, int):
        raise MalformedMessageError("it has other fields than ONNX")
    return value


def last_number(values: Sequence[int | Span]) -> int:
    """The last of some fields, which must be a number; 0 without any."""
    value = values[-1] if values else 0
    if not isinstance(value, int):
        raise MalformedMessageError("it has other fields than ONNX")
    return value
