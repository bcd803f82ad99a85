"""The control groups that this process is in, of version 1 and 2."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def groups(controller: str, root: Path = Path("/")) -> Iterator[Path]:
    """The directories of this process's groups for one controller, and of all groups above.

    A container may see the path of the host in /proc/self/cgroup while its own group is mounted as
    the root; groups that are not there must be passed over, and the root is always among them.

    Args:
        controller: "cpu" or "memory".
        root: where the file system is mounted; for tests.
    """
    mounts = root / "sys/fs/cgroup"
    for line in read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        inside = PurePosixPath(path.lstrip("/"))
        if ".." in inside.parts:  # outside of this cgroup namespace
            inside = PurePosixPath()
        if not controllers:
            folders = [mounts, mounts / "unified"]
        elif controller in controllers.split(","):
            folders = [mounts / controllers, mounts / controller]
        else:
            continue
        for folder in folders:
            yield from (folder / group for group in (inside, *inside.parents))


def read(file: Path) -> str:
    """The text of a file, or nothing."""
    try:
        return file.read_text()
    except OSError:
        return ""
