"""Lines on their way to a bucket: files on this machine, each of which becomes one object.

    CHAIN.lock              held by the process that writes the chain, or brings what it left
    CHAIN.0000000042.jsonl  a window: its lines from line 42 on; the last of them is written to

A file with a lock that nobody holds is of a process that is no more; whoever finds it brings it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.trust.audit.sinks.append import AppendFile, sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from function.trust.audit.chain import ChainHead

_WINDOW_BYTES = 1024**2
_LOCK = ".lock"
_WINDOW = re.compile(r"(.+)\.([0-9]{10,})\.jsonl")


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """When a window ends, and how much there may be.

    Attributes:
        window_s: after how many seconds.
        most_bytes: of all windows of a process that are not brought yet.
        fsync: whether an answer waits until its line outlives the machine.
    """

    window_s: float
    most_bytes: int
    fsync: bool


class Spool:
    """A `LineSink` whose windows somebody else brings elsewhere.

    Args:
        folder: where; it is made when it is missing.
        limits: of its windows.
        clock: seconds that only grow.
    """

    def __init__(
        self, folder: Path, limits: SpoolLimits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.folder, self._limits, self._clock = folder, limits, clock
        self.chain = ""
        self._window: AppendFile | None = None
        self._began = 0.0
        self._ended: deque[Path] = deque()
        self._lock_fd: int | None = None
        self._counting, self._bytes = threading.Lock(), 0

    def open(self, chain: str) -> list[ChainHead]:
        """Take the lock of the chain; what is in the bucket is seen later."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.chain = chain
        if self._lock_fd is None:
            self._lock_fd = _locked(self.folder, chain)
        return []

    def append(self, line: bytes, seq: int) -> None:
        """Add a line to the running window, or begin one with it."""
        if self._bytes + len(line) > self._limits.most_bytes:
            raise OSError(
                errno.EDQUOT,
                f"{self._bytes} bytes are not in the bucket yet, which may be"
                f" {self._limits.most_bytes} (EMBER_AUDIT_SPOOL_BYTES)",
            )
        self.tick()
        if self._window is None or self._window.lost:
            self._window = AppendFile(self.folder / f"{self.chain}.{seq:010d}.jsonl")
            self._began = self._clock()
            if self._limits.fsync:
                sync_folder(self.folder)
        self._window.append(line)
        self._count(len(line))

    def sync(self) -> None:
        """Have the running window outlive the machine."""
        if self._limits.fsync and self._window:
            self._window.sync()

    def tick(self) -> None:
        """End the running window when its time is over, or it is large enough."""
        size = self._window.size if self._window else 0
        late = self._clock() - self._began >= self._limits.window_s
        if size and (late or size >= _WINDOW_BYTES):
            self._end_window()

    def close(self) -> None:
        """End the last window."""
        if self._window:
            self._end_window()

    def next(self) -> Path | None:
        """The oldest window that has ended; None when there is none. For any thread."""
        return self._ended[0] if self._ended else None

    def brought(self, path: Path, size: int) -> None:
        """Delete a window of `next`, whose bytes were brought. For any thread."""
        path.unlink(missing_ok=True)
        self._ended.popleft()
        self._count(-size)

    def release(self) -> None:
        """Give up the lock; whatever is left is for others to bring."""
        if self._lock_fd is not None:
            if not any(windows(self.folder, self.chain)):
                (self.folder / (self.chain + _LOCK)).unlink(missing_ok=True)
            os.close(self._lock_fd)
            self._lock_fd = None

    def _end_window(self) -> None:
        if self._window:
            if self._limits.fsync:
                self._window.sync()  # some of its lines may be of this turn
            self._window.close()
            self._ended.append(self._window.path)
            self._window = None

    def _count(self, size: int) -> None:
        with self._counting:
            self._bytes += size


def windows(folder: Path, chain: str) -> Iterator[Path]:
    """The windows of a chain that are there, in their order."""
    for path in sorted(folder.glob(f"{chain}.*.jsonl")):
        if _WINDOW.fullmatch(path.name):
            yield path


@contextmanager
def left_over(folder: Path, but: str) -> Iterator[list[Path]]:
    """The windows of processes that are no more, which nobody else brings while the body runs.

    Args:
        folder: the spool.
        but: the chain of this process.
    """
    held: list[tuple[int, Path]] = []
    try:
        others = (path for path in sorted(folder.glob("*" + _LOCK)) if path.stem != but)
        held.extend((fd, path) for path in others if (fd := _abandoned(path)) is not None)
        yield [window for _, path in held for window in windows(folder, path.stem)]
    finally:
        for fd, path in held:
            if not any(windows(folder, path.stem)):
                path.unlink(missing_ok=True)
            os.close(fd)


def _locked(folder: Path, chain: str) -> int:
    """A lock file that was never there without being held."""
    path = folder / f".{chain}.new"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.rename(folder / (chain + _LOCK))
    except BaseException:
        os.close(fd)
        raise
    return fd


def _abandoned(path: Path) -> int | None:
    """The lock of a file that nobody holds; None when somebody does."""
    with suppress(OSError):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
        else:
            return fd
    return None
