"""How much memory this process holds, and how much its container may hold."""

from __future__ import annotations

import os
from pathlib import Path

from function.runtime import cgroups


def resident(root: Path = Path("/")) -> int:
    """Bytes of memory that this process holds (RSS)."""
    return _pages(root)[1] * os.sysconf("SC_PAGE_SIZE")


def held(root: Path = Path("/")) -> int:
    """Bytes that the kernel cannot take back from this process: RSS without pages of files."""
    _, resident, shared, *_ = _pages(root)
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def limit(root: Path = Path("/")) -> int | None:
    """Bytes at which the kernel kills, or None when the cgroups set no limit.

    Reads cgroup v2 (`memory.max`) and v1 (`memory.limit_in_bytes`); the smallest on the path from
    this process's group to the root counts.
    """
    texts = [
        cgroups.read(group / name).strip()
        for group in cgroups.groups("memory", root)
        for name in ("memory.max", "memory.limit_in_bytes")
    ]
    # v1 writes "none" as the largest multiple of the page size in 63 bits
    limits = [int(text) for text in texts if text.isdecimal() and int(text) < 1 << 62]
    return min(limits, default=None)


def _pages(root: Path) -> list[int]:
    """The fields of /proc/self/statm; zeros where there is no such file."""
    return [int(field) for field in cgroups.read(root / "proc/self/statm").split()] or [0, 0, 0]
