"""What the process holds, and what its container may hold."""

from __future__ import annotations

import mmap

import pytest

from function.runtime import memory


def write(root, group, name, text):
    folder = root / "sys/fs/cgroup" / group
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def enter(root, text):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(text)


def test_memory_that_is_used_is_counted():
    before = memory.resident(), memory.held()
    with mmap.mmap(-1, 64 * 1024**2) as block:
        for at in range(0, len(block), 4096):
            block[at] = 1
        after = memory.resident(), memory.held()
    assert after[0] - before[0] > 50 * 1024**2
    assert after[0] >= memory.held()


def test_pages_of_files_can_be_taken_back(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/statm").write_text("900 300 100 5 0 123 0\n")
    assert memory.resident(tmp_path) == 300 * mmap.PAGESIZE
    assert memory.held(tmp_path) == 200 * mmap.PAGESIZE


def test_where_nothing_is_told_there_is_no_limit(tmp_path):
    assert memory.limit(tmp_path) is None
    assert (memory.resident(tmp_path), memory.held(tmp_path)) == (0, 0)


@pytest.mark.parametrize(
    ("entered", "group", "name"),
    [
        ("0::/pod/box\n", "pod/box", "memory.max"),
        ("0::/pod/box\n", "", "memory.max"),
        ("4:memory:/pod/box\n", "memory/pod/box", "memory.limit_in_bytes"),
        ("4:memory:/pod/box\n", "memory", "memory.limit_in_bytes"),
        ("0::/../outside\n", "", "memory.max"),
    ],
)
def test_the_limit_is_found_in_both_versions_own_group_or_root(tmp_path, entered, group, name):
    enter(tmp_path, entered)
    write(tmp_path, group, name, "500000000\n")
    assert memory.limit(tmp_path) == 500_000_000


def test_the_smallest_limit_on_the_path_counts(tmp_path):
    enter(tmp_path, "0::/pod/box\n")
    write(tmp_path, "pod/box", "memory.max", "max\n")
    write(tmp_path, "pod", "memory.max", "300\n")
    write(tmp_path, "", "memory.max", "400\n")
    assert memory.limit(tmp_path) == 300


@pytest.mark.parametrize(
    ("name", "none"), [("memory.max", "max\n"), ("memory.limit_in_bytes", "9223372036854771712\n")]
)
def test_no_limit_is_none(tmp_path, name, none):
    enter(tmp_path, "0::/\n" if name == "memory.max" else "4:memory:/\n")
    write(tmp_path, "" if name == "memory.max" else "memory", name, none)
    assert memory.limit(tmp_path) is None
