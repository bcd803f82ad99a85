"""Files behind `file://` URIs: mounted buckets, network volumes, disks."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from warmup.objects.errors import (
    ChangedError,
    MalformedError,
    NotFoundError,
    RefusedError,
    RestartError,
    TooLargeError,
    TransientError,
)
from warmup.objects.protocol import Facts, Object
from warmup.objects.thread import in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warmup.objects.protocol import Sink, Take

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MALFORMED = "A file: URI looks like file:///folder/photo.jpg."


@dataclass(frozen=True, slots=True)
class FileSource:
    """A `Source` of one `file://` URI that an operator has named."""

    uri: str

    async def stat(self) -> Facts:
        """Size, and the time of its last change as tag."""

        def look() -> Facts:
            with self._opened() as fd:
                return _facts(fd)

        return await in_thread(look)

    async def read(self, facts: Facts, sink: Sink) -> None:
        """Copy what the sink lacks."""

        def copy() -> None:
            with self._opened() as fd:
                try:
                    if _facts(fd) != facts:
                        raise RestartError("it has changed")
                    while not sink.full and sink.copy(fd):
                        pass
                except OSError as error:
                    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                        raise
                    raise TransientError(error.strerror or str(error)) from error

        await in_thread(copy)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            fd = os.open(url2pathname(urlsplit(self.uri).path), os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise RefusedError(error.strerror) from error
        try:
            yield fd
        finally:
            os.close(fd)


class FileStore:
    """An `ObjectStore` of the files below some folders, for URIs of strangers.

    The time of the last change is the generation; there is no metadata. Links are followed only
    while they stay inside. What is opened is what was checked: the way down is walked without
    links, folder by folder.

    Args:
        folders: what URIs may lead into.
        mode: permissions of new files, less the umask; those that are replaced keep theirs.
    """

    def __init__(self, folders: Sequence[Path], mode: int = 0o666) -> None:
        self._folders, self._mode = folders, mode

    async def stat(self, uri: str) -> Facts:
        """Size, and the time of its last change as generation."""

        def look() -> Facts:
            with self._opened(uri) as fd:
                return _facts(fd)

        return await in_thread(look)

    async def read(self, uri: str, limit: int, take: Take) -> Object:
        """Read it, unless its size changes meanwhile."""
        facts = await self.stat(uri)
        if (facts.size or 0) > limit:
            raise TooLargeError(limit, facts.size)
        take(facts.size or 0)

        def read() -> Object:
            with self._opened(uri) as fd, os.fdopen(os.dup(fd), "rb") as file:
                data = file.read(limit + 1)
                found = _facts(fd)
            if len(data) > limit:
                raise TooLargeError(limit)
            if len(data) != facts.size:
                raise TransientError("the file is being written")
            return Object(data, found)

        return await in_thread(read)

    async def write(
        self,
        uri: str,
        data: bytes,
        *,
        media_type: str,  # noqa: ARG002
        metadata: Mapping[str, str],  # noqa: ARG002
        if_generation_match: int | None,
    ) -> int | None:
        """Write it under another name first; folders that are missing are made."""
        return await in_thread(lambda: self._write(uri, data, if_generation_match))

    async def delete(self, uri: str) -> None:
        """Remove it, if it is there."""

        def remove() -> None:
            with self._folder(uri) as (folder, name):
                os.unlink(name, dir_fd=folder)

        with suppress(NotFoundError):
            await in_thread(remove)

    async def close(self) -> None:
        """Do nothing."""

    def _write(self, uri: str, data: bytes, expected: int | None) -> int:
        with self._folder(uri, make=True) as (folder, name):
            partial = f".{secrets.token_hex(8)}.part"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(partial, flags, self._mode, dir_fd=folder)
            try:
                with os.fdopen(fd, "wb") as file:
                    with suppress(FileNotFoundError):
                        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
                        os.fchmod(fd, stat.S_IMODE(before.st_mode))
                    file.write(data)
                    file.flush()
                    os.fsync(fd)
                    generation = os.fstat(fd).st_mtime_ns
                if expected == 0:
                    os.link(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
                    return generation
                if expected and _generation(folder, name) != expected:
                    raise ChangedError
                os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
            except FileExistsError:
                raise ChangedError from None
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(partial, dir_fd=folder)
            return generation

    @contextmanager
    def _opened(self, uri: str) -> Iterator[int]:
        with self._folder(uri) as (folder, name):
            # A pipe in place of a file must not keep us waiting for somebody to write into it.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            fd = os.open(name, flags, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise NotFoundError("What is at the URI is not a file.")
                yield fd
            finally:
                os.close(fd)

    @contextmanager
    def _folder(self, uri: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder that a URI leads into, and the name in it."""
        root, parts = self._way(uri)
        with ExitStack() as opened, _translating():
            fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            opened.callback(os.close, fd)
            for part in parts[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=fd)
                fd = os.open(part, _FOLDER, dir_fd=fd)
                opened.callback(os.close, fd)
            yield fd, parts[-1]

    def _way(self, uri: str) -> tuple[Path, tuple[str, ...]]:
        """The allowed folder, and the way from there, without links and dots."""
        try:
            split = urlsplit(uri)
            text = url2pathname(split.path)
        except ValueError:  # of what is no host at all
            raise MalformedError(_MALFORMED) from None
        if split.netloc not in {"", "localhost"} or not text.startswith("/") or "\0" in text:
            raise MalformedError(_MALFORMED)
        with _translating():
            path = Path(text).resolve()
            for folder in self._folders:
                root = folder.resolve()
                if path.is_relative_to(root) and path != root:
                    return root, path.relative_to(root).parts
        raise RefusedError(
            "The URI leads outside of the folders that are allowed (EMBER_URI_FOLDERS)."
        )


@contextmanager
def _translating() -> Iterator[None]:
    """Failures of the system in our words."""
    try:
        yield
    except FileNotFoundError:
        raise NotFoundError from None
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}:
            raise NotFoundError from None
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise RefusedError("Ember may not use the file at the URI.") from None
        raise TransientError(error.strerror or "the file system fails") from error
    except RuntimeError:  # a circle of links, before Python 3.13
        raise NotFoundError from None


def _facts(fd: int) -> Facts:
    found = os.fstat(fd)
    # Two streams, so that a slow volume is read ahead while the other one writes.
    return Facts(found.st_size, f"{found.st_mtime_ns}", 2, found.st_mtime_ns)


def _generation(folder: int, name: str) -> int:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime_ns
    except FileNotFoundError:
        return 0
