"""XMP in every kind of file that Ember writes or reads: write it, read it, keep what inputs said.

Nothing here decodes pixels or needs more than Python. `mark` takes photos and animations as bytes;
videos get `tags` with their head and, where that is not enough, `mark_file` when they are whole.
"""

from __future__ import annotations

import mmap
from contextlib import contextmanager
from typing import TYPE_CHECKING

from function.images import kinds, signature
from function.images.kinds import FileKind
from function.trust.marking import aigc, provenance
from function.trust.marking.containers import (
    gif,
    heif,
    jpeg,
    matroska,
    movie,
    png,
    tiff,
    webp,
)
from function.trust.marking.containers.carried import Carried
from function.trust.marking.provenance import FoundMetadata

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from function.trust.marking.containers.carried import Buffer
    from function.trust.statement import Statement

__all__ = ["FoundMetadata", "ingredients_of", "mark", "mark_file", "read", "tags"]

_PUT = {
    "JPEG": jpeg.put,
    "PNG": png.put,
    "WEBP": webp.put,
    "GIF": gif.put,
    "AVIF": heif.put,
    "HEIF": heif.put,
}
_CARRIED = {
    "JPEG": jpeg.carried,
    "PNG": png.carried,
    "WEBP": webp.carried,
    "GIF": gif.carried,
    "TIFF": tiff.carried,
    "AVIF": heif.carried,
    "HEIF": heif.carried,
}
_MOVIES = {FileKind.MP4, FileKind.MOV}


def mark(data: bytes, statement: Statement) -> bytes:
    """Put the metadata of an output into a photo or an animation.

    Args:
        data: a JPEG, PNG, WebP, GIF, AVIF or HEIC.
        statement: what it says of itself.

    Returns:
        The file, whose pixels, profile and times are what they were. XMP that was there is gone, so
        that marking twice is marking once; the same statement makes the same bytes.

    Raises:
        ValueError: it is none of these, or is damaged.
    """
    put = _PUT.get(signature.image_format(data[: kinds.HEAD]) or "")
    if put is None:
        raise ValueError("neither a photo nor an animation that can be marked")
    return put(data, provenance.packet(statement))


def tags(kind: FileKind, statement: Statement) -> dict[str, str]:
    """The tags of the whole file with which a video is begun.

    Args:
        kind: of the video.
        statement: what it says of itself.

    Returns:
        By name; none where there are none. An MP4 or QuickTime file that has any needs FFmpeg's
        option `movflags=use_metadata_tags` and, in any case, `mark_file` in the end.
    """
    found = {}
    if statement.producer:
        found[movie.KEY] = aigc.label(statement.producer, statement.request_id)
    if kind not in _MOVIES:
        found[matroska.XMP] = provenance.packet(statement).decode()
    return found


def mark_file(path: Path, statement: Statement) -> None:
    """Put the metadata of an output into an MP4 or QuickTime file, by adding to its end.

    Args:
        path: the file, which nobody else writes.
        statement: what it says of itself.

    Raises:
        ValueError: it is no such file, or is damaged.
        OSError: it cannot be written.
    """
    movie.append(path, provenance.packet(statement))


def read(file: bytes | Path) -> FoundMetadata:
    """What a file says of its making, whatever kind of file it is and whoever wrote it.

    Args:
        file: its bytes, or where it is; of a long one, only what is looked at is read.

    Returns:
        What was found; nothing of a file that is damaged or of another kind.

    Raises:
        OSError: it cannot be read.
    """
    with _opened(file) as data:
        return provenance.found(_carried(data))


def ingredients_of(file: bytes | Path) -> tuple[bytes, ...]:
    """What of an input's metadata is kept in an output: how it was made, and of what.

    Neither places nor cameras, names of people, or marked faces are kept.

    Args:
        file: as `read` takes it.

    Returns:
        XMP packets for `Statement.ingredients`; none where it says nothing of its making.

    Raises:
        OSError: it cannot be read.
    """
    with _opened(file) as data:
        return provenance.ingredients(_carried(data))


def _carried(data: Buffer) -> Carried:
    """What a file of any kind carries."""
    head = data[: kinds.HEAD]
    reader = _CARRIED.get(signature.image_format(head) or "")
    if reader is None:
        video = kinds.video(head)
        if video is None:
            return Carried()
        reader = movie.carried if video in _MOVIES else matroska.carried
    return reader(data)


@contextmanager
def _opened(file: bytes | Path) -> Iterator[Buffer]:
    """The bytes of a file, which are read as they are looked at."""
    if isinstance(file, bytes):
        yield file
        return
    if not file.stat().st_size:
        yield b""
        return
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data
