"""A JSON body to its object, in memory that is bounded whatever characters are in it.

Python keeps a text with a single emoji in it at four bytes a character. So long strings, which are
photos in data: URIs, never become text: they stay bytes of the body, and what is left is short.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from function import jsontext
from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

LONG = 1024
"""Strings of more bytes stay as they are in the body."""
_MAX_STRINGS, _MAX_QUOTES = 512, 4096
_MAX_STRUCTURE = 64 * 1024  # bytes outside of strings, white space included
_MAX_BACKSLASHES = 1024
_MARK = secrets.token_hex(16)  # nobody can write that into a body

_ESCAPED = [
    (escape.encode(), letter.encode())
    for letter in "+/="
    for escape in {f"\\u{ord(letter):04X}", f"\\u{ord(letter):04x}"}
] + [(rb"\/", b"/")]
"""How encoders write the letters of base64 that mean something elsewhere; nobody escapes others."""


@dataclass(frozen=True, slots=True)
class LongString:
    """A string of the body as it is written there, without its quotes."""

    raw: memoryview

    @property
    def plain(self) -> bytes | memoryview:
        """Its bytes, as far as those that are escaped are letters of base64."""
        text = bytes(self.raw[: 2 * LONG])
        if b"\\" not in text and not _has_escape(self.raw):
            return self.raw
        whole = bytes(self.raw)
        for escape, letter in _ESCAPED:
            whole = whole.replace(escape, letter)
        return whole

    def text(self, most: int) -> str | None:
        """It as text; None when that has more than so many characters.

        Raises:
            ValueError: it is no string of JSON.
        """
        if len(self.raw) > 6 * most:  # as many bytes as one character takes at most
            return None
        found = jsontext.parse(b'"' + bytes(self.raw) + b'"', halves=True)
        return found if isinstance(found, str) and len(found) <= most else None


def parse(data: bytes | bytearray) -> Mapping[str, Any]:
    """The JSON object in a body, whose long strings are `LongString`.

    Raises:
        Problem: it is not UTF-8, not JSON (NaN is not), no object, names a member twice, or has
            more structure than any request: thousands of values take far more memory than bytes.
    """
    short, long = _split(data)
    try:
        value = jsontext.parse(short, _unique, halves=True)
    except ValueError:
        raise Problem("bad_request", "The body is not JSON in UTF-8.") from None
    if not isinstance(value, dict):
        raise Problem("bad_request", "The body is JSON, but not an object.")
    return cast("Mapping[str, Any]", _restored(value, long))


def _split(data: bytes | bytearray) -> tuple[bytearray, list[LongString]]:
    """The body with marks in place of its long strings, and these."""
    view, short = memoryview(data), bytearray()
    long: list[LongString] = []
    at = strings = quotes = structure = 0
    while (start := data.find(b'"', at)) >= 0:
        end = start
        while True:
            end = data.find(b'"', end + 1)
            quotes += 1
            if end < 0 or not _is_escaped(data, start, end):
                break
            if quotes > _MAX_QUOTES:
                raise _too_much()
        if end < 0:
            break
        strings += 1
        structure += start - at
        if strings > _MAX_STRINGS or structure > _MAX_STRUCTURE:
            raise _too_much()
        short += view[at : start + 1]
        if end - start - 1 > LONG:
            short += f"{_MARK}{len(long)}".encode()
            long.append(LongString(view[start + 1 : end]))
        else:
            short += view[start + 1 : end]
        short += b'"'
        at = end + 1
    if structure + len(data) - at > _MAX_STRUCTURE:
        raise _too_much()
    return short + view[at:], long


def _is_escaped(data: bytes | bytearray, start: int, end: int) -> bool:
    """Whether the quote at `end` belongs to the string that begins at `start`."""
    before = data[max(start + 1, end - _MAX_BACKSLASHES) : end]
    backslashes = len(before) - len(before.rstrip(b"\\"))
    if backslashes == _MAX_BACKSLASHES:
        raise _too_much()
    return backslashes % 2 == 1


def _has_escape(raw: memoryview) -> bool:
    """Whether there is a backslash; looks at the bytes without a copy of all of them."""
    step = 1024**2
    return any(b"\\" in bytes(raw[at : at + step]) for at in range(0, len(raw), step))


def _restored(value: object, long: list[LongString]) -> object:
    if isinstance(value, list):
        return [_restored(each, long) for each in value]
    if isinstance(value, dict):
        return {_name(name, long): _restored(each, long) for name, each in value.items()}
    if isinstance(value, str) and value.startswith(_MARK):
        return long[int(value.removeprefix(_MARK))]
    return value


def _name(name: str, long: list[LongString]) -> str:
    """The name of a member; of one that is long, what can be told."""
    found = _restored(name, long)
    return found if isinstance(found, str) else bytes(long[-1].raw[:80]).decode(errors="replace")


def _too_much() -> Problem:
    return Problem("bad_request", "The JSON has far more members than a request can have.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise Problem("bad_request", "The JSON names a member twice.")
    return members
