"""Where the finished parts of a clip are kept, so that nothing is computed twice."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path


class Parts(Protocol):
    """Keeps bytes by name, until the clip is whole. What it raises ends the work on the clip."""

    async def get(self, name: str) -> bytes | None:
        """A part that is there, whole; else None."""
        ...

    async def put(self, name: str, data: bytes) -> None:
        """Keep a part; it is there whole or not at all."""
        ...


class Folder:
    """Keeps parts in a folder of a file system.

    Args:
        path: the folder; it is made when the first part comes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    async def get(self, name: str) -> bytes | None:
        """See `Parts`."""
        try:
            return await asyncio.to_thread((self._path / name).read_bytes)
        except FileNotFoundError:
            return None

    async def put(self, name: str, data: bytes) -> None:
        """See `Parts`."""
        await asyncio.to_thread(self._write, name, data)

    def clear(self) -> None:
        """Delete all of it."""
        shutil.rmtree(self._path, ignore_errors=True)

    def _write(self, name: str, data: bytes) -> None:
        self._path.mkdir(exist_ok=True)
        partial = self._path / f"{name}.{os.getpid()}"
        partial.write_bytes(data)
        partial.replace(self._path / name)
