"""Compiled modules without what only debuggers and linkers read.

A process is given the segments of an ELF file; symbols for debuggers and the table of sections lie
behind the last of them. Builder images have no `strip`, and cutting the end off needs none.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
_LOADED = 1
_SECTIONS_AT, _SECTIONS = 0x28, 0x3C


def strip(path: Path) -> int:
    """Cut off what is behind the last segment of an ELF file; other files stay as they are.

    Returns:
        How many bytes that were.
    """
    with path.open("r+b") as file:
        head = file.read(64)
        if not head.startswith(_ELF64_LITTLE_ENDIAN):
            return 0
        (at,) = struct.unpack_from("<Q", head, 0x20)
        size, count = struct.unpack_from("<HH", head, 0x36)
        end = int(at + size * count)
        file.seek(at)
        for _ in range(count):
            entry = file.read(size)
            (kind,) = struct.unpack_from("<I", entry)
            (begin,) = struct.unpack_from("<Q", entry, 0x08)
            (length,) = struct.unpack_from("<Q", entry, 0x20)
            if kind == _LOADED:
                end = max(end, begin + length)
        before = file.seek(0, 2)
        file.truncate(end)
        file.seek(_SECTIONS_AT)
        file.write(bytes(8))
        file.seek(_SECTIONS)
        file.write(bytes(4))  # their number, and which of them has the names
    return before - end
