"""Photos as callers have them, and the body of a request made of them."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Photo: TypeAlias = str | os.PathLike[str] | bytes | BinaryIO
"""A path, the bytes of a file, an open file, or a URI (`https://`, `gs://`, `data:`) that the
server reads."""

_URI = re.compile(r"(data:|(https?|gs|file)://)", re.IGNORECASE)


def several(photos: Photo | Sequence[Photo]) -> tuple[Photo, ...]:
    """One or more as a tuple."""
    if isinstance(photos, Sequence) and not isinstance(photos, (str, bytes)):
        return tuple(photos)
    return (photos,)


def body(photos: Mapping[str, Iterable[Photo]], values: Mapping[str, str | int]) -> dict[str, Any]:
    """What a `Call` carries: a form, or JSON where a photo is named by a URI.

    Nothing tells how files are called here.

    Raises:
        OSError: a file cannot be read.
    """
    if not any(_is_uri(photo) for each in photos.values() for photo in each):
        files = tuple((name, _read(photo)) for name, each in photos.items() for photo in each)
        return {"fields": {name: str(value) for name, value in values.items()}, "files": files}
    named = {name: [_named(photo) for photo in each] for name, each in photos.items()}
    one_or_more = {name: each[0] if len(each) == 1 else each for name, each in named.items()}
    return {"json": {**one_or_more, **values}}


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
