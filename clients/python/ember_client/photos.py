"""Photos as callers have them, and the body of a request made of them."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Photo: TypeAlias = str | os.PathLike[str] | bytes | BinaryIO
"""A path, the bytes of a file, an open file, or a URI (`https://`, `gs://`, `data:`) that the
server reads."""

_URI = re.compile(r"(data:|(https?|gs|file)://)", re.IGNORECASE)


Source: TypeAlias = "Photo | Sequence[Photo] | Mapping[str, Photo | Sequence[Photo]]"
"""Photos of one person; or of several, each with a name."""


def body(photos: Mapping[str, Source], values: Mapping[str, str | int]) -> dict[str, Any]:
    """What a `Call` carries: a form, or JSON where a photo is named by a URI.

    Nothing tells how files are called here.

    Raises:
        OSError: a file cannot be read.
    """
    parts = tuple(_parts(photos))
    if not any(_is_uri(photo) for _, _, photo in parts):
        files = tuple((field, name, _read(photo)) for field, name, photo in parts)
        return {"fields": {name: str(value) for name, value in values.items()}, "files": files}
    named = {
        field: {name: _uris(each) for name, each in given.items()}
        if isinstance(given, Mapping)
        else _uris(given)
        for field, given in photos.items()
    }
    return {"json": {**named, **values}}


def _parts(photos: Mapping[str, Source]) -> Iterator[tuple[str, str, Photo]]:
    """Of each photo its field, who is on it (or else the field again), and the photo itself."""
    for field, given in photos.items():
        for name, each in (given if isinstance(given, Mapping) else {field: given}).items():
            for photo in _several(each):
                yield field, name, photo


def _several(photos: Photo | Sequence[Photo]) -> tuple[Photo, ...]:
    if isinstance(photos, Sequence) and not isinstance(photos, (str, bytes)):
        return tuple(photos)
    return (photos,)


def _uris(photos: Photo | Sequence[Photo]) -> str | list[str]:
    uris = [_named(photo) for photo in _several(photos)]
    return uris[0] if len(uris) == 1 else uris


def _is_uri(photo: Photo) -> bool:
    return isinstance(photo, str) and _URI.match(photo) is not None


def _read(photo: Photo) -> bytes:
    if isinstance(photo, bytes):
        return photo
    return Path(photo).read_bytes() if isinstance(photo, (str, os.PathLike)) else photo.read()


def _named(photo: Photo) -> str:
    if isinstance(photo, str) and _is_uri(photo):
        return photo
    return f"data:application/octet-stream;base64,{b64encode(_read(photo)).decode()}"
