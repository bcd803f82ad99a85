"""The store: a folder of files by their digest, which processes and pods of one node share.

    sha256/DIGEST     a whole file, proven before it got this name
    verified/DIGEST   what that file was (size, time, inode) when its digest was last found right
    partial/DIGEST.*  what has come of a file so far
    locks/DIGEST      held by whoever fetches or removes it
    plans/KEY.json    what a plan, which is such a file, depends on
    plans/kernels-…   what TensorRT-RTX has compiled for a plan on one GPU

Whoever uses a file shares a lock on it, so that it is not evicted. Nothing here fetches.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from warmup.failures import DamagedError, StoreError
from warmup.models import lock
from warmup.models.outside import check_whole

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from warmup.models.file import File

_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}
_FULL = {errno.ENOSPC, errno.EDQUOT}
_FOLDERS = ("sha256", "verified", "partial", "locks", "plans")


@dataclass(frozen=True, slots=True)
class Held:
    """A proven file, which stays where it is until `close`.

    Attributes:
        file: with its path.
        fd: what holds it.
    """

    file: File
    fd: int

    def close(self) -> None:
        """Allow that it is evicted."""
        os.close(self.fd)


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One file in the store.

    Attributes:
        sha256: its digest.
        size: bytes that it takes on the disk, those of a partial file included.
        last_used: Unix time.
        in_use: whether anybody holds it now.
    """

    sha256: str
    size: int
    last_used: float
    in_use: bool


@dataclass(frozen=True, slots=True)
class Store:
    """One store.

    Attributes:
        root: its folder.
        quota: the most bytes that it may take.
        read_only: whether nothing is written into it, also where that were possible.
    """

    root: Path
    quota: int | None = None
    read_only: bool = False

    def path(self, sha256: str) -> Path:
        """Where a whole file is."""
        return self.root / "sha256" / sha256

    def partial(self, sha256: str) -> Path:
        """What the names of a partial file begin with."""
        return self.root / "partial" / sha256

    def lock(self, sha256: str) -> Path:
        """What is locked while a file is fetched or removed."""
        return self.root / "locks" / sha256

    def create(self) -> None:
        """Make the folders.

        Raises:
            StoreError: it cannot be written to.
        """
        with self.writing():
            for name in _FOLDERS:
                (self.root / name).mkdir(parents=True, exist_ok=True)
            with lock.attempt(self.lock("probe")):
                pass

    @contextmanager
    def writing(self, what: str = "") -> Iterator[None]:
        """Say what is wrong with the store when something inside the block cannot be written.

        Raises:
            StoreError: in place of an OSError.
        """
        try:
            yield
        except OSError as error:
            of = f"{what}: " if what else ""
            if error.errno in _READ_ONLY:
                reason = f"is read-only ({error.strerror}): nothing can be fetched into it"
            elif error.errno in _FULL:
                reason = f"is full ({error.strerror}); `ember models gc` makes room"
            else:
                reason = f"cannot be used: {error.strerror or error}"
            raise StoreError(f"{of}the store {self.root} (EMBER_STORE) {reason}") from error

    def find(self, file: File, *, trust: bool = True) -> Held | None:
        """Hold a file that is here, or in its own place, and right.

        Args:
            file: which.
            trust: whether a file that was found right before and has not changed is hashed again.

        Returns:
            None when it is not here.

        Raises:
            DamagedError: it is here, but is not what it should be.
            OutsideError: it is not all that there is of a model.
            StoreError: it is here, but cannot be read.
        """
        path = file.path or self.path(file.sha256)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if file.path:
                raise DamagedError(f"{file.name}: {path}: there is no such file") from None
            return None
        except OSError as error:
            raise StoreError(f"{file.name}: {path}: {error.strerror}") from error
        try:
            lock.share(fd)
            found = os.fstat(fd)
            if found.st_nlink == 0:  # evicted between the two lines above
                os.close(fd)
                return None
            if not trust or not self._proven(file, found):
                verified = file.verify(path)
                check_whole(file, path)
                self.prove(file, verified)
            elif not self.read_only:
                with suppress(OSError):
                    os.utime(self._marker(file.sha256))
        except BaseException:
            os.close(fd)
            raise
        return Held(replace(file, path=path), fd)

    def commit(self, file: File, fd: int) -> Held:
        """Give a partial file that is whole and has the right digest its name.

        Args:
            file: which.
            fd: its partial file, open for writing; the result has it from then on.

        Raises:
            StoreError: the disk did not take it.
            OutsideError: it is not all that there is of a model.
        """
        path = self.path(file.sha256)
        check_whole(file, self.partial(file.sha256).with_suffix(".data"))
        with self.writing(file.name):
            os.fchmod(fd, 0o444)
            os.fsync(fd)
            lock.share(fd)
            self.partial(file.sha256).with_suffix(".data").rename(path)
            _sync(path.parent)
        self.partial(file.sha256).with_suffix(".json").unlink(missing_ok=True)
        self.prove(file, os.fstat(fd))
        return Held(replace(file, path=path), fd)

    def prove(self, file: File, found: os.stat_result) -> None:
        """Note that a file was right, so that the next start need not hash it; if we can."""
        if self.read_only:
            return
        marker = self._marker(file.sha256)
        with suppress(OSError):
            marker.parent.mkdir(parents=True, exist_ok=True)
            replace_file(marker, json.dumps(_facts(found)))

    def allocate(self, file: File, fd: int, keep: Collection[str]) -> None:
        """Take the room for a partial file, so that the disk cannot be full later.

        Raises:
            StoreError: there is not enough, even after evicting what nothing uses.
        """
        with lock.exclusive(self.lock("store")):
            self.make_room(file.size - _allocated(os.fstat(fd)), keep, file.name)
            with self.writing(file.name):
                try:
                    os.posix_fallocate(fd, 0, max(file.size, 1))
                except OSError as error:
                    if error.errno not in {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}:
                        raise
                os.ftruncate(fd, file.size)

    def make_room(self, need: int, keep: Collection[str], what: str) -> None:
        """Evict until `need` more bytes fit into the quota, and see whether the disk has them.

        Args:
            need: bytes.
            keep: digests that must stay.
            what: what it is for, in an error.

        Raises:
            StoreError: there is not enough.
        """
        if self.quota is not None:
            entries = sorted(self.entries(), key=lambda entry: entry.last_used)
            excess = sum(entry.size for entry in entries) + need - self.quota
            for entry in entries:
                if excess > 0 and entry.sha256 not in keep and self.remove(entry.sha256):
                    excess -= entry.size
            if excess > 0:
                raise StoreError(
                    f"{what}: {need} bytes do not fit into the store {self.root}: its quota"
                    f" (EMBER_STORE_QUOTA) is {self.quota}, and everything in it is in use;"
                    f" {excess} bytes are missing"
                )
        free = shutil.disk_usage(self.root).free
        if need > free:
            raise StoreError(
                f"{what}: {need} bytes do not fit on the disk of the store {self.root}, which has"
                f" {free} free; `ember models gc` makes room"
            )

    def fetching(self, sha256: str) -> bool:
        """Whether a process fetches a file into it now; what is asked is read only."""
        try:
            fd = os.open(self.lock(sha256), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not lock.shared(fd)
        finally:
            os.close(fd)

    def missing(self, file: File) -> int:
        """The bytes of room that a file would still take."""
        try:
            return file.size - _allocated(self.partial(file.sha256).with_suffix(".data").stat())
        except OSError:
            return file.size

    def entries(self) -> list[StoreEntry]:
        """Everything that is whole, or was left behind partial."""
        found: dict[str, StoreEntry] = {}
        for folder in ("partial", "sha256"):
            for path in _listed(self.root / folder):
                with suppress(OSError):
                    sha256, stat = path.name.partition(".")[0], path.stat()
                    used = max(stat.st_mtime, _modified(self._marker(sha256)))
                    before = found[sha256].size if sha256 in found else 0
                    size = _allocated(stat) + before
                    found[sha256] = StoreEntry(sha256, size, used, self._in_use(sha256))
        return list(found.values())

    def drop(self, sha256: str) -> bool:
        """Remove a whole file that nobody uses; False when somebody does.

        Whoever calls it holds the lock of the file, so that no other file can get its name.
        """
        with suppress(FileNotFoundError):
            fd = os.open(self.path(sha256), os.O_RDONLY | os.O_CLOEXEC)
            try:
                if lock.used(fd):
                    return False
                self.path(sha256).unlink()
            finally:
                os.close(fd)
        self._marker(sha256).unlink(missing_ok=True)
        return True

    def remove(self, sha256: str) -> bool:
        """Remove a file, whole or partial; False when somebody uses or fetches it."""
        with lock.attempt(self.lock(sha256)) as ours:
            if not ours or not self.drop(sha256):
                return False
            for folder in ("verified", "partial"):
                for path in (self.root / folder).glob(f"{sha256}*"):
                    path.unlink(missing_ok=True)
        return True

    def _in_use(self, sha256: str) -> bool:
        try:
            fd = os.open(self.path(sha256), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return lock.used(fd)
        finally:
            os.close(fd)

    def _marker(self, sha256: str) -> Path:
        return self.root / "verified" / sha256

    def _proven(self, file: File, found: os.stat_result) -> bool:
        if found.st_size != file.size:
            return False
        try:
            return bool(json.loads(self._marker(file.sha256).read_bytes()) == _facts(found))
        except (OSError, ValueError):
            return False


def default_root() -> Path:
    """Where the store is when nothing says where."""
    home = Path("~/.cache/ember").expanduser() if os.environ.get("HOME") else None
    return home or Path("/var/cache/ember")


def replace_file(path: Path, content: Path | str | bytes) -> None:
    """Write a file so that readers, also on other nodes, see all of the old or all of the new.

    Args:
        path: the file.
        content: of it, or the path of a file to copy.
    """
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        if isinstance(content, Path):
            shutil.copyfile(content, draft)
        else:
            draft.write_bytes(content.encode() if isinstance(content, str) else content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _facts(found: os.stat_result) -> dict[str, int | bool]:
    """What a marker has; one without `whole` is older than that check."""
    stamps = {"size": found.st_size, "mtime_ns": found.st_mtime_ns, "inode": found.st_ino}
    return stamps | {"whole": True}


def _allocated(stat: os.stat_result) -> int:
    return stat.st_blocks * 512


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
