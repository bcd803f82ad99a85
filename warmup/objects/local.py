"""Files from another folder: a mounted bucket, a network volume, a disk."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from warmup.objects.source import Facts, RefusedError, RestartError, TransientError
from warmup.objects.thread import in_thread

if TYPE_CHECKING:
    from warmup.objects.source import Sink


@dataclass(frozen=True, slots=True)
class LocalSource:
    """One `file://` URI."""

    uri: str

    async def stat(self) -> Facts:
        """Size, and the time of its last change as tag."""
        return await in_thread(self._stat)

    async def read(self, facts: Facts, sink: Sink) -> None:
        """Copy what the sink lacks."""
        await in_thread(lambda: self._read(facts, sink))

    def _open(self) -> int:
        path = url2pathname(urlsplit(self.uri).path)
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise RefusedError(error.strerror) from error

    def _stat(self) -> Facts:
        fd = self._open()
        try:
            return _facts(fd)
        finally:
            os.close(fd)

    def _read(self, facts: Facts, sink: Sink) -> None:
        fd = self._open()
        try:
            if _facts(fd) != facts:
                raise RestartError("it has changed")
            while not sink.full and sink.copy(fd):
                pass
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise
            raise TransientError(error.strerror or str(error)) from error
        finally:
            os.close(fd)


def _facts(fd: int) -> Facts:
    found = os.fstat(fd)
    # Two streams, so that a slow volume is read ahead while the other one writes.
    return Facts(found.st_size, f"{found.st_mtime_ns}", streams=2)
