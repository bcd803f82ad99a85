"""Putting the files of a manifest where every node finds them, by their digest, once.

In a bucket or a folder they are `sha256/DIGEST`, as in a store, so that a folder that was published
to can be one (`EMBER_SHARED_STORE`). What is there already and right is left as it is, so that the
same command goes on after whatever has ended it.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname

from warmup.extras import bring
from warmup.failures import UnavailableError
from warmup.models.rewritten import rewritten
from warmup.models.store import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warmup.models.file import File
    from warmup.models.manifest import Model
    from warmup.settings.settings import FetchSettings


class PublishState(StrEnum):
    """What has become of a file."""

    THERE = "there"
    UPLOADING = "uploading"
    REPLACING = "replacing"
    UPLOADED = "uploaded"


class PublishPlace(Protocol):
    """A bucket or a folder, in which a file is `sha256/DIGEST`.

    All calls raise UnavailableError, saying what to do.
    """

    def uri(self, sha256: str) -> str:
        """What a manifest names the file of a digest by."""
        ...

    def found(self, file: File) -> bool | None:
        """Whether what is there is right; None when nothing is."""
        ...

    def put(self, file: File) -> None:
        """Write a file that lies somewhere here, in place of what `found` has seen."""
        ...

    def close(self) -> None:
        """Close its connections."""
        ...


class FolderPlace:
    """A `PublishPlace` on a disk or a network volume."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute() / "sha256"

    def uri(self, sha256: str) -> str:
        """A `file://` URI."""
        return (self._folder / sha256).as_uri()

    def found(self, file: File) -> bool | None:
        """Whether it has the digest; it is hashed."""
        path = self._folder / file.sha256
        try:
            with path.open("rb") as opened:
                return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnavailableError(f"{file.name}: {path}: {error.strerror}") from error

    def put(self, file: File) -> None:
        """Copy it whole or not at all."""
        path = self._folder / file.sha256
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, lying(file))
            path.chmod(0o444)
            with path.open("rb") as written:
                os.fsync(written.fileno())
        except OSError as error:
            raise UnavailableError(
                f"{file.name}: {error.filename or path}: {error.strerror or error}"
            ) from error

    def close(self) -> None:
        """Do nothing."""


def place_of(place: str, settings: FetchSettings) -> PublishPlace:
    """What a URI or a path means.

    Raises:
        UnavailableError: nothing can be published there, or what does it is not installed.
    """
    parts = urlsplit(place)
    if place and not parts.scheme:
        return FolderPlace(Path(place))
    if parts.scheme == "file" and not parts.netloc and parts.path:
        return FolderPlace(Path(url2pathname(parts.path)))
    if parts.scheme != "gs" or not parts.netloc or parts.query or parts.fragment:
        raise UnavailableError(
            f"{place!r}: files are published to gs://bucket/folder, to file:///folder or to a path;"
            " from https:// they can be fetched only"
        )
    try:
        from warmup.models.publish_gcs import BucketPlace
    except ModuleNotFoundError as error:
        raise UnavailableError(f"{place} needs {error.name}: {bring('gcs')}") from error
    return BucketPlace(place, settings.fetch_stall_s)


def publish(
    models: Sequence[Model],
    place: PublishPlace,
    report: Callable[[File, PublishState], None] = lambda *_: None,
) -> None:
    """Publish the files of models; each is hashed before, and read again and hashed behind it.

    Args:
        models: each file of them lies somewhere here.
        place: where to.
        report: called with what becomes of each file.

    Raises:
        DamagedError: a file is not what the manifest says, here or once it is written.
        UnavailableError: the place does not take it; what it has taken stays.
    """
    files = {file.sha256: file for model in models for file in model.files}
    for file in files.values():
        file.verify(lying(file))
    with closing(place):
        for file in files.values():
            if found := place.found(file):
                report(file, PublishState.THERE)
                continue
            report(file, PublishState.UPLOADING if found is None else PublishState.REPLACING)
            place.put(file)
            if not place.found(file):
                raise UnavailableError(
                    f"{file.name}: what was written to {place.uri(file.sha256)} is not what is"
                    " there now: something else writes there too, or the storage is broken; try"
                    " again"
                )
            report(file, PublishState.UPLOADED)


def published(path: Path, place: PublishPlace, folder: Path) -> str:
    """The text of a manifest with the URIs that its files have in a place.

    Args:
        path: the manifest.
        place: where its files are published.
        folder: where the new manifest will lie; files of golden checks stay where they are.

    Raises:
        ManifestError: a URI cannot be changed in the text.
    """
    return rewritten(
        path,
        uri=lambda _, sha256: place.uri(sha256),
        golden=lambda file: os.path.relpath(file, folder),
    )


def lying(file: File) -> Path:
    """Where a file lies that was found or fetched."""
    assert file.path is not None  # noqa: S101 (what is held lies somewhere)
    return file.path
