"""Compiled modules without what only debuggers and linkers read, and without what they only name.

A process is given the segments of an ELF file. Builder images have no `strip` and no `patchelf`;
for 64-bit files of little-endian machines, which wheels for servers are, little is needed of them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRING_TABLE = 1, 5
_ENTRY = struct.Struct("<qQ")


@dataclass(frozen=True, slots=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int


def strip(path: Path) -> int:
    """Cut off what is behind the last segment of an ELF file; other files stay as they are.

    Returns:
        How many bytes that were.
    """
    with path.open("r+b") as file:
        segments = list(_segments(file))
        if not segments:
            return 0
        end = max(each.offset + each.size for each in segments)
        before = file.seek(0, 2)
        file.truncate(end)
        file.seek(0x28)  # where the table of sections is
        file.write(bytes(8))
        file.seek(0x3C)  # how many there are, and which of them has the names
        file.write(bytes(4))
    return before - end


def needed(path: Path) -> list[str]:
    """The libraries that an ELF file names as its own needs."""
    with path.open("rb") as file:
        _, entries, names = _dynamic(file)
        return [names[value] for kind, value in entries if kind == _NEEDED]


def forget(path: Path, library: str) -> None:
    """Take a library that an ELF file uses nothing of from those that it names.

    Raises:
        LookupError: it does not name it.
    """
    with path.open("r+b") as file:
        offset, entries, names = _dynamic(file)
        kept = [each for each in entries if each[0] != _NEEDED or names[each[1]] != library]
        if len(kept) == len(entries):
            raise LookupError(f"{path.name} does not name {library}")
        file.seek(offset)
        file.write(b"".join(_ENTRY.pack(*each) for each in kept))
        file.write(bytes(_ENTRY.size * (len(entries) - len(kept))))


class _Names:
    """The strings of a file, by where they begin in their table."""

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self._file, self._offset = file, offset

    def __getitem__(self, at: int) -> str:
        self._file.seek(self._offset + at)
        return self._file.read(256).partition(b"\0")[0].decode()


def _segments(file: BinaryIO) -> Iterator[_Segment]:
    """The segments; none of other files."""
    head = file.read(64)
    if head.startswith(_ELF64_LITTLE_ENDIAN):
        (at,) = struct.unpack_from("<Q", head, 0x20)
        size, count = struct.unpack_from("<HH", head, 0x36)
        yield _Segment(0, at, 0, size * count)  # the table itself
        file.seek(at)
        table = file.read(size * count)
        for begin in range(0, size * count, size):
            kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", table, begin)
            if kind in {_LOAD, _DYNAMIC}:
                yield _Segment(kind, offset, address, length)


def _dynamic(file: BinaryIO) -> tuple[int, list[tuple[int, int]], _Names]:
    """Where the entries for the dynamic linker are, what they are, and the strings they mean."""
    segments = list(_segments(file))
    ours = next(each for each in segments if each.kind == _DYNAMIC)
    file.seek(ours.offset)
    entries = [(kind, value) for kind, value in _ENTRY.iter_unpack(file.read(ours.size))]
    table = dict(entries)[_STRING_TABLE]
    holder = next(
        each
        for each in segments
        if each.kind == _LOAD and each.address <= table < each.address + each.size
    )
    return ours.offset, entries, _Names(file, holder.offset + table - holder.address)
