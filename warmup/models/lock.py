"""Locks between processes and pods of one node: flock(2), which ends with its holder.

A holder that is killed leaves nothing behind that would have to be cleaned up.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def share(fd: int) -> None:
    """Say that an open file is in use, until it is closed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
    except OSError as error:
        # Some read-only network mounts know no locks; nothing can be evicted from them either.
        if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.EBADF}:
            raise


def shared(fd: int) -> bool:
    """Whether an open file can be shared now, which it cannot while somebody has it alone."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a mount that knows no locks: nobody can have it
        return True
    return True


def used(fd: int) -> bool:
    """Whether another open file shares this one. If not, nobody can until `fd` is closed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


@contextmanager
def attempt(path: Path) -> Iterator[bool]:
    """Try to hold the lock file `path`; the value says whether it is held inside the block."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        yield not used(fd)
    finally:
        os.close(fd)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; wait for it as long as it takes."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
