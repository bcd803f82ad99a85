"""A place that nodes share, as far as plans need it: small files read, files written whole.

It is a bucket (`gs://bucket/folder`) or a folder (a path, or `file:///folder`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from warmup.extras import bring
from warmup.failures import UnavailableError
from warmup.models.store import replace_file
from warmup.objects.errors import ObjectError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_MOST = 1 << 20


def uri(place: str) -> str:
    """The absolute URI of a place that may be a path."""
    return place if urlsplit(place).scheme else Path(place).absolute().as_uri()


def read(place: str, patience_s: float) -> bytes | None:
    """A small file; None when it is not there.

    Raises:
        UnavailableError: the place cannot be read.
    """
    if urlsplit(place).scheme != "gs":
        try:
            with _path(place).open("rb") as file:
                return file.read(_MOST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnavailableError(f"{place}: {error.strerror}") from error

    def download(blob: Any) -> bytes | None:
        if not blob.exists(timeout=patience_s, retry=None):
            return None
        return bytes(blob.download_as_bytes(end=_MOST, timeout=patience_s, retry=None))

    return _in_cloud(place, download)


def write(place: str, content: Path | str) -> None:
    """Write a file, which readers see whole or not at all.

    Args:
        place: its address.
        content: the path of a file to copy, or text.

    Raises:
        UnavailableError: the place cannot be written to.
    """
    if urlsplit(place).scheme != "gs":
        target = _path(place)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, content)
        except OSError as error:
            raise UnavailableError(f"{place}: {error.strerror}") from error
        return

    def upload(blob: Any) -> None:
        if isinstance(content, Path):
            blob.upload_from_filename(str(content))
        else:
            blob.upload_from_string(content, content_type="application/json")

    _in_cloud(place, upload, write=True)


def _path(place: str) -> Path:
    return Path(unquote(urlsplit(place).path) if urlsplit(place).scheme else place)


def _in_cloud(place: str, call: Callable[[Any], T], *, write: bool = False) -> T:
    try:
        from warmup.objects import gcs
    except ModuleNotFoundError as error:
        raise UnavailableError(f"{place} needs {error.name}: {bring('gcs')}") from error
    parts, cloud = urlsplit(place), gcs.Cloud(gcs.WRITE if write else gcs.READ)
    try:
        blob = cloud.client().bucket(parts.netloc).blob(unquote(parts.path[1:]))
        return gcs.translating(lambda: call(blob))
    except ObjectError as error:
        raise UnavailableError(f"{place}: {error}") from error
    finally:
        cloud.close()
