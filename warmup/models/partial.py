"""The bytes of one file that have come so far: on disk, so that a killed process loses little.

The data file has its full size from the start and is filled in parts; the state file beside it says
how far each part is. The state is written after the data, so it never says too much, except when
the whole machine fails: then the digest tells. It is also the progress that others can read.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warmup.failures import StoppedError
from warmup.models.store import replace_file

if TYPE_CHECKING:
    from collections.abc import Collection

    from warmup.models.file import File
    from warmup.models.store import Store

PART = 16 * 1024**2
_SAVE_EVERY_S = 0.5
_COPY = 4 * 1024**2
_CANNOT_COPY = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}


@dataclass(slots=True, eq=False)
class PartialRange:
    """Bytes `start` to `stop` of the file; those before `at` are there."""

    start: int
    at: int
    stop: int
    writer: PartialWriter | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Partial:
    """The partial file of one file; whoever has it must hold the lock of the file.

    Attributes:
        file: what it will be.
        fd: the data file, open for reading and writing.
        parts: all of them, in order.
        resumed: whether bytes of an earlier process are among it.
    """

    def __init__(self, store: Store, file: File, keep: Collection[str]) -> None:
        """Open what is there, or begin.

        Raises:
            StoreError: there is no room, or the store cannot be written to.
        """
        self.file = file
        self._data = store.partial(file.sha256).with_suffix(".data")
        self._state = store.partial(file.sha256).with_suffix(".json")
        self._store = store
        self._tag = ""
        self._saved_at = 0.0
        with store.writing(file.name):
            self.fd = os.open(self._data, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self.parts = _parts(file.size)
        self.resumed = self._load()
        try:
            store.allocate(file, self.fd, keep)
        except BaseException:
            if not self.resumed:
                self.discard()
            self.close()
            raise

    @property
    def done(self) -> int:
        """How many bytes are there."""
        return sum(part.at - part.start for part in self.parts)

    @property
    def prefix(self) -> int:
        """How many bytes are there without a gap from the first on."""
        for part in self.parts:
            if part.at < part.stop:
                return part.at
        return self.file.size

    def fits(self, tag: str) -> bool:
        """Whether what is there may be continued with content of this tag."""
        return not self._tag or not tag or self._tag == tag

    def begin(self, tag: str, *, keep: bool, parted: bool = True) -> None:
        """Go on with content of this tag, keeping what is there or not, in parts or as one."""
        self._tag = tag
        if not keep:
            self.parts = _parts(self.file.size) if parted else [PartialRange(0, 0, self.file.size)]
            self.resumed = False
        self.save()

    def save(self) -> None:
        """Write down how far each part is."""
        state = {
            "name": self.file.name,
            "source": self.file.source,
            "size": self.file.size,
            "done": self.done,
            "tag": self._tag,
            "at": [part.at for part in self.parts],
        }
        self._saved_at = time.monotonic()
        with self._store.writing(self.file.name):
            replace_file(self._state, json.dumps(state))

    def save_sometimes(self) -> None:
        """Save, unless it was done a moment ago."""
        if time.monotonic() - self._saved_at > _SAVE_EVERY_S:
            self.save()

    def read(self, buffer: memoryview, at: int) -> int:
        """Read some bytes that are there.

        Args:
            buffer: what they are read into.
            at: the first of them.

        Returns:
            How many; at least one.

        Raises:
            StoreError: the disk does not give them.
        """
        with self._store.writing(self.file.name):
            if count := os.preadv(self.fd, [buffer], at):
                return count
            raise OSError(errno.EIO, "something has shortened the partial file")

    def write(self, chunk: memoryview, at: int) -> int:
        """Write some bytes.

        Args:
            chunk: the bytes.
            at: where the first of them belongs.

        Returns:
            How many were written.

        Raises:
            StoreError: the disk does not take them.
        """
        with self._store.writing(self.file.name):
            return os.pwrite(self.fd, chunk, at)

    def discard(self) -> None:
        """Remove it from the disk, as far as the disk lets us; what is open stays open."""
        for path in (self._state, self._data):
            with suppress(OSError):
                path.unlink()

    def close(self) -> None:
        """Close the data file."""
        os.close(self.fd)

    def _load(self) -> bool:
        try:
            state = json.loads(self._state.read_bytes())
            found, tag = state["at"], state["tag"]
            whole = os.fstat(self.fd).st_size == self.file.size and len(found) == len(self.parts)
            if not whole or not isinstance(tag, str):
                return False
            for part, at in zip(self.parts, found, strict=True):
                part.at = min(max(part.start, int(at)), part.stop)
        except (OSError, ValueError, TypeError, KeyError):
            self.parts = _parts(self.file.size)
            return False
        self._tag = tag
        return self.done > 0


class PartialWriter:
    """Writes into one part, in order, until it is full or another becomes its writer.

    A thread that was given up, because its server was too slow, may still try to write; it must
    not come between the bytes of its successor.
    """

    def __init__(self, partial: Partial, part: PartialRange) -> None:
        self._partial = partial
        self._part = part
        with part.lock:
            part.writer = self

    @property
    def at(self) -> int:
        """The first byte that is missing."""
        return self._part.at

    @property
    def stop(self) -> int:
        """The end of the part."""
        return self._part.stop

    @property
    def full(self) -> bool:
        """Whether nothing is missing."""
        return self._part.at == self._part.stop

    def write(self, chunk: bytes | bytearray) -> int:
        """Append; what is beyond the end of the part is left out.

        Returns:
            How many bytes were given.

        Raises:
            StoppedError: another writes now.
            StoreError: the disk does not take it.
        """
        part = self._part
        with part.lock:
            self._own()
            rest = memoryview(chunk)[: part.stop - part.at]
            while rest:
                written = self._partial.write(rest, part.at)
                part.at += written
                rest = rest[written:]
        return len(chunk)

    def copy(self, fd: int) -> int:
        """Append some bytes of an open file, from the same place in it.

        Returns:
            How many; 0 at the end of that file.

        Raises:
            OSError: reading failed, or writing; which of them is not known.
        """
        part = self._part
        count = min(_COPY, part.stop - part.at)
        try:
            with part.lock:
                self._own()
                copied = os.copy_file_range(fd, self._partial.fd, count, part.at, part.at)
                part.at += copied
                return copied
        except OSError as error:
            if error.errno not in _CANNOT_COPY:
                raise
        return self.write(os.pread(fd, count, part.at))

    def leave(self) -> None:
        """Write no more."""
        with self._part.lock:
            if self._part.writer is self:
                self._part.writer = None

    def _own(self) -> None:
        if self._part.writer is not self:
            raise StoppedError("another attempt writes this part")


class Head:
    """A writer that keeps the first bytes in memory."""

    def __init__(self, stop: int) -> None:
        self.content = bytearray()
        self.stop = stop

    @property
    def at(self) -> int:
        """The first byte that is missing."""
        return len(self.content)

    @property
    def full(self) -> bool:
        """Whether nothing is missing."""
        return self.at == self.stop

    def write(self, chunk: bytes | bytearray) -> int:
        """Append; what is beyond the end is left out."""
        self.content += chunk[: self.stop - self.at]
        return len(chunk)

    def copy(self, fd: int) -> int:
        """Append some bytes of an open file, from the same place in it."""
        return self.write(os.pread(fd, self.stop - self.at, self.at))


def progress(store: Store, file: File) -> int:
    """How many bytes of a file another process has fetched so far."""
    try:
        return int(json.loads(store.partial(file.sha256).with_suffix(".json").read_bytes())["done"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _parts(size: int) -> list[PartialRange]:
    return [PartialRange(start, start, min(start + PART, size)) for start in range(0, size, PART)]
