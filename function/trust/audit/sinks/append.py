"""A file that lines are added to, and nothing else is done with."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_ONLY_OWNER = 0o600


class AppendFile:
    """A new file that only its owner may read. Everything raises OSError.

    Args:
        path: where; there must be nothing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, _FLAGS, _ONLY_OWNER)
        self.size = 0

    @property
    def lost(self) -> bool:
        """Whether somebody has removed it."""
        return os.fstat(self._fd).st_nlink == 0

    def append(self, line: bytes) -> None:
        """Add a line, or nothing of it."""
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            with suppress(OSError):  # else it stays in the file, where `verify` finds it
                os.ftruncate(self._fd, self.size)
            raise
        self.size += len(line)

    def sync(self) -> None:
        """Have what was added outlive the machine."""
        os.fdatasync(self._fd)

    def close(self) -> None:
        """Close it."""
        os.close(self._fd)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder outlive the machine."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
