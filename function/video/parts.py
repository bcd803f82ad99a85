"""Where the finished parts of a clip are kept, so that nothing is computed twice."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

from warmup.models.store import replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from function.requests import PartStore


class Doubled:
    """Keeps parts in a folder, for as long as this process works on the clip, and elsewhere too.

    Args:
        near: the folder.
        far: keeps them for others to go on.
    """

    def __init__(self, near: Folder, far: PartStore) -> None:
        self._near, self._far = near, far

    async def get(self, name: str) -> bytes | None:
        """A part that is there, whole; else None."""
        data = await self._near.get(name)
        if data is None and (data := await self._far.get(name)) is not None:
            await self._near.put(name, data)
        return data

    async def put(self, name: str, data: bytes) -> None:
        """Keep a part; it is there whole or not at all."""
        await self._near.put(name, data)
        await self._far.put(name, data)


class Folder:
    """Keeps parts in a folder of a file system.

    Args:
        path: the folder; it is made when the first part comes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    async def get(self, name: str) -> bytes | None:
        """A part that is there, whole; else None."""
        try:
            return await asyncio.to_thread((self._path / name).read_bytes)
        except FileNotFoundError:
            return None

    async def put(self, name: str, data: bytes) -> None:
        """Keep a part; it is there whole or not at all."""
        await asyncio.to_thread(self._write, name, data)

    def clear(self) -> None:
        """Delete all of it."""
        shutil.rmtree(self._path, ignore_errors=True)

    def _write(self, name: str, data: bytes) -> None:
        self._path.mkdir(exist_ok=True)
        replace_file(self._path / name, data)
