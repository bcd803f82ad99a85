"""Files of a manifest in a bucket of Google Cloud Storage."""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from google.cloud.storage.retry import DEFAULT_RETRY

from warmup.failures import UnavailableError
from warmup.models.publish import lying
from warmup.objects import gs_uri
from warmup.objects.errors import ChangedError, NotFoundError, ObjectError, TransientError
from warmup.objects.gcs import WRITE, Cloud, translating

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from google.cloud.storage import Blob

    from warmup.models.file import File

T = TypeVar("T")

_CHUNK = 32 * 1024**2
"""Bytes of one request: what fails is sent again from there on."""
_TRIES_LAST = 6
"""How many times the time for silence a call is tried again for."""


class BucketPlace:
    """A `PublishPlace` in a bucket.

    Args:
        place: `gs://bucket/folder`; the folder may be missing.
        silence_s: how long an answer may take to come.
    """

    def __init__(self, place: str, silence_s: float) -> None:
        parts = urlsplit(place)
        folder = unquote(parts.path).strip("/")
        self._bucket, self._prefix = parts.netloc, f"{folder}/sha256/" if folder else "sha256/"
        self._asking: dict[str, Any] = {
            "timeout": silence_s,
            "retry": DEFAULT_RETRY.with_timeout(_TRIES_LAST * silence_s),
        }
        self._cloud = Cloud(WRITE)
        self._seen: dict[str, int] = {}
        self._written: set[str] = set()

    def uri(self, sha256: str) -> str:
        """A `gs://` URI."""
        return gs_uri.uri(self._bucket, self._prefix + sha256)

    def found(self, file: File) -> bool | None:
        """Whether size and MD5, which the store has worked out, are those of the file.

        What was written here is read again, and its SHA-256 counts; so it does where there is no
        MD5, as of objects that were composed.
        """

        def look() -> bool | None:
            blob = self._blob(file)
            try:
                translating(lambda: blob.reload(**self._asking))
            except NotFoundError:
                self._seen[file.sha256] = 0
                return None
            self._seen[file.sha256] = int(blob.generation)
            if blob.size != file.size:
                return False
            if blob.md5_hash and file.sha256 not in self._written:
                return bool(blob.md5_hash == _md5(lying(file)))
            return translating(lambda: self._read(blob)) == file.sha256

        return self._told(file, look)

    def put(self, file: File) -> None:
        """Upload it in chunks, each of which is sent again when it fails."""

        def upload() -> None:
            blob = self._blob(file, chunk_size=_CHUNK)
            with suppress(ChangedError):  # by whoever publishes the same: what is there is read
                translating(
                    lambda: blob.upload_from_filename(
                        str(lying(file)),
                        content_type="application/octet-stream",
                        if_generation_match=self._seen[file.sha256],
                        **self._asking,
                    )
                )

        self._told(file, upload)
        self._written.add(file.sha256)

    def close(self) -> None:
        """Close its connections."""
        self._cloud.close()

    def _blob(self, file: File, **how: Any) -> Blob:
        bucket = self._cloud.client().bucket(self._bucket)
        return bucket.blob(self._prefix + file.sha256, **how)

    def _read(self, blob: Blob) -> str:
        """The SHA-256 of an object."""
        generation = int(blob.generation)
        with blob.open(
            "rb", chunk_size=_CHUNK, if_generation_match=generation, **self._asking
        ) as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()

    def _told(self, file: File, work: Callable[[], T]) -> T:
        """The result of some work, or what is to be done about its failure."""
        try:
            return work()
        except ObjectError as error:
            raise UnavailableError(f"{file.name}: {self._what_to_do(error)}") from error

    def _what_to_do(self, error: ObjectError) -> str:
        place = f"gs://{self._bucket}"
        if isinstance(error, NotFoundError):
            return (
                f"there is no bucket {place} (gcloud storage buckets create {place}, or name"
                " another one)"
            )
        if isinstance(error, TransientError):
            return (
                f"{place} does not answer ({error}); what is there stays, and the same command goes"
                " on from there"
            )
        if self._cloud.anonymous:
            return (
                f"{place}: {error}; no Google credentials were found: `gcloud auth"
                " application-default login`, or GOOGLE_APPLICATION_CREDENTIALS"
            )
        return f"{place}: {error}; whoever publishes needs the role roles/storage.objectUser there"


def _md5(path: Path) -> str:
    """As the store writes it."""
    with path.open("rb") as opened:
        found = hashlib.file_digest(opened, lambda: hashlib.md5(usedforsecurity=False))
    return base64.b64encode(found.digest()).decode()
