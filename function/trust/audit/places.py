"""Where audits are read: files, folders, standard input, buckets."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from function.trust.audit.line import AuditFile
from function.trust.audit.sinks.folder import ENDING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from datetime import datetime

    from function.trust.audit.bucket import BucketStore

_AT_ONCE = 16
_LARGEST = 64 * 1024**2
"""An object has a window of lines, which is much less."""


class NoPlaceError(Exception):
    """There is no such place; its text says which."""


async def files(
    place: str, open_bucket: Callable[[], BucketStore], since: datetime | None = None
) -> AsyncIterator[AuditFile]:
    """All files of a place.

    A folder and a bucket have nothing but audits in their files that end with `.jsonl`; a single
    file, or `-` for standard input, may be the log of anything.

    Args:
        place: a path, `file:///…`, `gs://…` or `-`.
        open_bucket: reaches buckets, when one is named.
        since: of a bucket, what was begun on a day before is left out.

    Raises:
        NoPlaceError: there is nothing.
        OSError: it cannot be read.
        ObjectError: likewise, of a bucket.
    """
    if place.startswith("gs:"):
        async for file in _bucket(place, open_bucket(), since):
            yield file
        return
    for file in _local(place):
        yield file


def _local(place: str) -> Iterator[AuditFile]:
    if place == "-":
        yield AuditFile(place, "-", sys.stdin.buffer, pure=False)
        return
    path = Path(url2pathname(urlsplit(place).path)) if place.startswith("file:") else Path(place)
    if path.is_dir():
        for each in sorted(path.rglob(f"*{ENDING}")):
            yield _file(place, each, pure=True)
    elif path.exists():
        yield _file(place, path, pure=path.suffix == ENDING)
    else:
        raise NoPlaceError(f"There is nothing at {place}.")


def _file(place: str, path: Path, *, pure: bool) -> AuditFile:
    def lines() -> Iterator[bytes]:
        with path.open("rb") as file:
            yield from file

    return AuditFile(place, str(path), lines(), pure)


async def _bucket(
    place: str, store: BucketStore, since: datetime | None
) -> AsyncIterator[AuditFile]:
    base = place.rstrip("/") + "/"
    start = f"{since:%Y-%m-%d}" if since else ""
    names = [uri for uri in await store.names(base, start) if uri.endswith(ENDING)]

    async def read(uri: str) -> AuditFile:
        found = await store.read(uri, _LARGEST, lambda _: None)
        lines = found.data.splitlines(keepends=True)
        return AuditFile(place, unquote(uri), lines, pure=True)

    for at in range(0, len(names), _AT_ONCE):
        for file in await asyncio.gather(*map(read, names[at : at + _AT_ONCE])):
            yield file
