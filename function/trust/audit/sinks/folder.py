"""A folder with a file for each chain, perhaps shared by replicas."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from function.trust.audit.chain import ChainHead
from function.trust.audit.line import AuditFile, read
from function.trust.audit.sinks.append import AppendFile, sync_folder

if TYPE_CHECKING:
    from pathlib import Path

ENDING = ".jsonl"

_MOST = 20
"""So many chains are seen at most, those that changed last; others have seen those before."""

_TAIL = 256 * 1024


class FolderSink:
    """A `LineSink` of `file:///folder/`.

    Args:
        folder: which; it is made when it is missing.
        fsync: whether an answer waits until its line outlives the machine, not only the process.
    """

    def __init__(self, folder: Path, *, fsync: bool) -> None:
        self._folder, self._fsync = folder, fsync
        self._file: AppendFile | None = None
        self._chain = ""

    def open(self, chain: str) -> list[ChainHead]:
        """See what other chains are there."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._chain = chain
        if self._file is None or self._file.lost:
            self._file = self._opened()
        return heads(self._folder)

    def append(self, line: bytes, seq: int) -> None:  # noqa: ARG002
        """Add a line to the file of the chain, or to another when somebody removed that."""
        if self._file is None or self._file.lost:
            self._file = self._opened()
        self._file.append(line)

    def sync(self) -> None:
        """Have the lines outlive the machine."""
        if self._fsync and self._file:
            self._file.sync()

    def tick(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()
            self._file = None

    def _opened(self) -> AppendFile:
        if self._file:
            self._file.close()
            self._file = None
        file = AppendFile(self._folder / (self._chain + ENDING))
        if self._fsync:
            sync_folder(self._folder)
        return file


def heads(folder: Path) -> list[ChainHead]:
    """The last lines of the chains in a folder, of those that changed last."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(ENDING):
                with suppress(FileNotFoundError):
                    found.append((entry.stat().st_mtime_ns, entry.path))
    latest = sorted(found, reverse=True)[:_MOST]
    return [head for _, path in latest if (head := _head(path))]


def _head(path: str) -> ChainHead | None:
    """The last whole line of a file; None where there is none."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (a name of scandir)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            lines = file.read().splitlines(keepends=True)
    except OSError:
        return None
    for line in read(AuditFile("", path, reversed(lines), pure=True)):
        if line.facts:
            return ChainHead(line.facts["chain"], line.facts["seq"], line.facts["mac"])
    return None
