"""How the C library keeps freed memory: photos come and go, and the process must not grow."""

from __future__ import annotations

import ctypes

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # of glibc's malloc.h
_LARGE = 8 * 1024**2


def settle() -> None:
    """Make glibc's heap return what large photos have used, and keep only two heaps.

    By itself glibc makes a heap for every few threads, and raises the size from which memory is
    mapped (and so returned at once when it is freed) to that of the largest photo. Resident memory
    then swings by a tenth and stays a third higher; `make bench-memory` shows it. Does nothing
    where the C library is another.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(_M_ARENA_MAX, 2)
        mallopt(_M_MMAP_THRESHOLD, _LARGE)


def trim() -> None:
    """Return the pages of the heap that nothing uses; takes milliseconds."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim:
        malloc_trim(0)
