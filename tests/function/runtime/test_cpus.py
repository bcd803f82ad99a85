"""CPUs: quotas of both cgroup versions, as hosts and containers show them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from function.runtime.cpus import cpu_quota, usable_cpus

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def sixteen_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)


def system(root: Path, groups: str, **files: str) -> Path:
    """A root directory with /proc/self/cgroup and files under /sys/fs/cgroup ("a/b": "text")."""
    for path, text in {"proc/self/cgroup": groups, **files}.items():
        file = root / path if path.startswith("proc/") else root / "sys/fs/cgroup" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def v1(folder: str, quota: int, period: int = 100_000) -> dict[str, str]:
    return {
        f"{folder}/cpu.cfs_quota_us": f"{quota}\n",
        f"{folder}/cpu.cfs_period_us": f"{period}\n",
    }


V1_LINES = "12:memory:/kubepods/pod1/abc\n5:cpu,cpuacct:/kubepods/pod1/abc\n1:name=systemd:/x\n"


@pytest.mark.parametrize(
    ("groups", "files", "quota"),
    [
        pytest.param("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5, id="v2 in a container"),
        pytest.param("0::/\n", {"cpu.max": "max 100000\n"}, None, id="v2 without a quota"),
        pytest.param("0::/\n", {}, None, id="v2 at the root of a host, which has no cpu.max"),
        pytest.param(
            "0::/a/b/c\n",
            {"a/cpu.max": "400000 100000", "a/b/cpu.max": "25000 50000", "a/b/c/cpu.max": "max 9"},
            0.5,
            id="v2, a quota in the middle",
        ),
        pytest.param(
            "0::/a\n",
            {"a/cpu.max": "300000 100000", "other/cpu.max": "100000 100000"},
            3.0,
            id="v2, another's quota does not count",
        ),
        pytest.param(
            "0::/kubepods/pod1/abc\n",
            {"cpu.max": "200000 100000"},
            2.0,
            id="v2, the host's path but the own group mounted as the root",
        ),
        pytest.param(
            "0::/../../other\n",
            {"cpu.max": "200000 100000"},
            2.0,
            id="v2, a path out of the namespace",
        ),
        pytest.param(
            V1_LINES,
            v1("cpu,cpuacct/kubepods/pod1/abc", 250_000),
            2.5,
            id="v1 on a host",
        ),
        pytest.param(V1_LINES, v1("cpu,cpuacct", 50_000), 0.5, id="v1 in a container"),
        pytest.param(V1_LINES, v1("cpu", 50_000), 0.5, id="v1 mounted by its short name"),
        pytest.param(V1_LINES, v1("cpu,cpuacct", -1), None, id="v1 without a quota"),
        pytest.param(
            V1_LINES,
            v1("cpu,cpuacct/kubepods", 400_000)
            | v1("cpu,cpuacct/kubepods/pod1", 100_000, 50_000)
            | v1("cpu,cpuacct/kubepods/pod1/abc", -1),
            2.0,
            id="v1, the pod's quota is the smallest",
        ),
        pytest.param(
            "2:cpuset:/a\n", v1("cpuset/a", 50_000), None, id="v1, not the cpu controller"
        ),
        pytest.param(
            "0::/a\n1:cpu:/b\n",
            {"unified/a/cpu.max": "300000 100000"} | v1("cpu/b", 200_000),
            2.0,
            id="both versions at once",
        ),
        pytest.param("0::/\n", {"cpu.max": "a lot\n"}, None, id="nonsense"),
        pytest.param("0::/\n", {"cpu.max": ""}, None, id="an empty file"),
        pytest.param("0::/\n", {"cpu.max": "100000 0\n"}, None, id="a period of zero"),
    ],
)
def test_the_smallest_quota_on_the_path_counts(
    tmp_path: Path, groups: str, files: dict[str, str], quota: float | None
):
    assert cpu_quota(system(tmp_path, groups, **files)) == quota


def test_no_cgroups_at_all_means_no_quota(tmp_path: Path):
    assert cpu_quota(tmp_path) is None


@pytest.mark.parametrize(
    ("quota", "cpus"), [("10000", 1), ("150000", 2), ("400000", 4), ("6400000", 16), ("max", 16)]
)
@pytest.mark.usefixtures("sixteen_cores")
def test_threads_follow_quota_and_affinity(tmp_path: Path, quota: str, cpus: int):
    assert usable_cpus(system(tmp_path, "0::/\n", **{"cpu.max": f"{quota} 100000"})) == cpus


def test_a_platform_without_affinity_counts_its_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cpus(tmp_path) == 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_a_process_that_is_pinned_to_one_core_plans_for_one():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from function.runtime.cpus import usable_cpus; print(usable_cpus())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert found.stdout.split() == ["1"]
