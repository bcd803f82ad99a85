"""How many CPUs this process may use: the container's quota, not the host's core count."""

from __future__ import annotations

import math
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def cpu_quota(root: Path = Path("/")) -> float | None:
    """CPUs that the cgroups allow, e.g. 1.5, or None when there is no quota.

    The smallest quota on the path from this process's group to the root counts, in cgroup v2
    (`cpu.max`) and v1 (`cpu.cfs_quota_us` over `cpu.cfs_period_us`). A container may see the path
    of the host in /proc/self/cgroup while its own group is mounted as the root; groups that are
    not there are passed over, and the root is always looked at.

    Args:
        root: where the file system is mounted; for tests.
    """
    return min(_quotas(root), default=None)


def usable_cpus(root: Path = Path("/")) -> int:
    """Whole CPUs to plan threads for: at least 1, no more than affinity and quota (rounded up)."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    quota = cpu_quota(root)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def _quotas(root: Path) -> Iterator[float]:
    """Every quota that applies to this process."""
    for group in _groups(root):
        # v2 has "quota period" in one file, where the quota may be "max"; in v1 -1 stands for none
        words = _read(group / "cpu.max").split() or [
            *_read(group / "cpu.cfs_quota_us").split(),
            *_read(group / "cpu.cfs_period_us").split(),
        ]
        if len(words) == 2 and all(word.isdecimal() and int(word) > 0 for word in words):
            yield int(words[0]) / int(words[1])


def _groups(root: Path) -> Iterator[Path]:
    """The directories of this process's groups that control CPUs, and of all groups above."""
    mounts = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        inside = PurePosixPath(path.lstrip("/"))
        if ".." in inside.parts:  # outside of this cgroup namespace
            inside = PurePosixPath()
        if not controllers:
            places = [mounts, mounts / "unified"]
        elif "cpu" in controllers.split(","):
            places = [mounts / controllers, mounts / "cpu"]
        else:
            continue
        for place in places:
            yield from (place / group for group in (inside, *inside.parents))


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
