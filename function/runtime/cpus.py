"""How many CPUs this process may use: the container's quota, not the host's core count."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from function.runtime import cgroups

if TYPE_CHECKING:
    from collections.abc import Iterator


def cpu_quota(root: Path = Path("/")) -> float | None:
    """CPUs that the cgroups allow, e.g. 1.5, or None when there is no quota.

    The smallest quota on the path from this process's group to the root counts, in cgroup v2
    (`cpu.max`) and v1 (`cpu.cfs_quota_us` over `cpu.cfs_period_us`).

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
    for group in cgroups.groups("cpu", root):
        # v2 has "quota period" in one file, where the quota may be "max"; in v1 -1 stands for none
        words = cgroups.read(group / "cpu.max").split() or [
            *cgroups.read(group / "cpu.cfs_quota_us").split(),
            *cgroups.read(group / "cpu.cfs_period_us").split(),
        ]
        if len(words) == 2 and all(word.isdecimal() and int(word) > 0 for word in words):
            yield int(words[0]) / int(words[1])
