"""Objects of Google Cloud Storage: `gs://bucket/name`, or `gs://bucket/name#generation`.

Google's library finds credentials and does what is small, in threads. Models come over the
connections that all other files use, for those can be given up when they stall, and cost half of
the library's processor time.

STORAGE_EMULATOR_HOST leads to an emulator, as it does everywhere. Without credentials, what is
public can still be read.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

import google.auth
from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import (
    DefaultCredentialsError,
    GoogleAuthError,
    InvalidOperation,
    RefreshError,
)
from google.auth.transport.requests import Request
from google.cloud import storage
from requests.exceptions import RequestException, SSLError

from warmup.objects import gs_uri
from warmup.objects.errors import (
    ChangedError,
    MalformedError,
    NotFoundError,
    RefusedError,
    RestartError,
    TooLargeError,
    TransientError,
)
from warmup.objects.http import HttpSource
from warmup.objects.protocol import Facts, Object
from warmup.objects.thread import in_thread
from warmup.retry import retry_after

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import aiohttp
    from google.auth.credentials import Credentials
    from google.cloud.storage import Blob

    from warmup.objects.protocol import Sink, Take

T = TypeVar("T")

READ = "https://www.googleapis.com/auth/devstorage.read_only"
WRITE = "https://www.googleapis.com/auth/devstorage.read_write"
_TAGS = ("x-goog-generation",)
_THREADS = 32


class Cloud:
    """Who we are, found out when it is first asked, and the client that says so.

    Args:
        scope: what we want to be allowed: `READ` or `WRITE`.
    """

    def __init__(self, scope: str = READ) -> None:
        self._scope = scope
        self._lock = threading.Lock()
        self._credentials: Credentials | None = None
        self._client: storage.Client | None = None

    def client(self) -> storage.Client:
        """The client; looking for credentials may use the network."""
        with self._lock:
            if self._client is None:
                self._credentials = _credentials(self._scope)
                self._client = storage.Client(project="none", credentials=self._credentials)
            return self._client

    @property
    def anonymous(self) -> bool:
        """Whether no credentials were found."""
        self.client()
        return isinstance(self._credentials, AnonymousCredentials)

    def headers(self, url: str) -> dict[str, str]:
        """What shows who we are when `url` is asked for; it may renew a token."""
        self.client()
        headers: dict[str, str] = {}
        with self._lock:
            if self._credentials:
                self._credentials.before_request(Request(), "GET", url, headers)
        return headers

    def close(self) -> None:
        """Close its connections."""
        if self._client:
            self._client.close()


class GcsStore:
    """An `ObjectStore` of `gs://` URIs.

    Args:
        silence_s: how long an answer may take to come.
    """

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s
        self._cloud = Cloud(WRITE)
        self._threads = asyncio.Semaphore(_THREADS)

    async def stat(self, uri: str) -> Facts:
        """Size, generation, media type and metadata."""
        return await self._do(lambda: _facts(self._asked(uri)))

    async def read(self, uri: str, limit: int, take: Take) -> Object:
        """Read exactly the generation that was asked about first."""
        facts = await self.stat(uri)
        if (facts.size or 0) > limit:
            raise TooLargeError(limit, facts.size)
        take(facts.size or 0)
        sink = _Memory(limit)

        def download() -> None:
            self._blob(uri, facts.generation).download_to_file(
                sink, timeout=self._silence_s, retry=None
            )

        await self._do(download)
        return Object(bytes(sink.data), facts)

    async def write(
        self,
        uri: str,
        data: bytes,
        *,
        media_type: str,
        metadata: Mapping[str, str],
        if_generation_match: int | None,
    ) -> int | None:
        """Write it in one request, which has the precondition."""

        def upload() -> int | None:
            blob = self._blob(uri)
            blob.metadata = dict(metadata)
            blob.upload_from_string(
                data,
                content_type=media_type,
                if_generation_match=if_generation_match,
                timeout=self._silence_s,
                retry=None,
            )
            return None if blob.generation is None else int(blob.generation)

        return await self._do(upload)

    async def delete(self, uri: str) -> None:
        """Delete the latest generation, if there is any."""
        with suppress(NotFoundError):
            await self._do(lambda: self._blob(uri).delete(timeout=self._silence_s, retry=None))

    async def names(self, base: str, start: str = "") -> list[str]:
        """The URIs of all objects that begin with one, in order.

        Args:
            base: what they begin with, a bucket at least.
            start: those whose rest comes before this in the order are left out.
        """
        parts = urlsplit(base)
        prefix = unquote(parts.path[1:])

        def ask() -> list[str]:
            found = self._cloud.client().list_blobs(
                parts.netloc,
                prefix=prefix,
                start_offset=prefix + start,
                fields="items(name),nextPageToken",
                timeout=self._silence_s,
                retry=None,
            )
            return [gs_uri.uri(parts.netloc, blob.name) for blob in found]

        return await self._do(ask)

    async def close(self) -> None:
        """Close its connections."""
        self._cloud.close()

    async def _do(self, work: Callable[[], T]) -> T:
        async with self._threads:
            return await in_thread(lambda: translating(work))

    def _asked(self, uri: str) -> Blob:
        blob = self._blob(uri)
        blob.reload(timeout=self._silence_s, retry=None)
        return blob

    def _blob(self, uri: str, generation: int | None = None) -> Blob:
        bucket, name, wanted = gs_uri.parse(uri)
        return self._cloud.client().bucket(bucket).blob(name, generation=generation or wanted)


@dataclass(frozen=True, slots=True)
class GcsSource:
    """A `Source` of one `gs://` URI.

    Attributes:
        uri: the URI.
        cloud: who asks.
        session: what brings the bytes.
        patience_s: how long the library may wait for an answer.
    """

    uri: str
    cloud: Cloud
    session: aiohttp.ClientSession
    patience_s: float
    media: dict[str, str] = field(default_factory=dict)

    async def stat(self) -> Facts:
        """Size, and the generation as tag."""
        return await in_thread(lambda: translating(self._stat))

    async def read(self, facts: Facts, sink: Sink) -> None:
        """Bring the range that the sink lacks, of exactly that generation."""
        url = self.media[facts.tag]
        headers = await in_thread(lambda: translating(lambda: self.cloud.headers(url)))
        headers["Accept-Encoding"] = "gzip"  # else what is stored compressed would come unpacked
        try:
            await HttpSource(url, self.session, headers, _TAGS).read(facts, sink)
        except RefusedError as error:
            if (await self.stat()).tag != facts.tag:
                raise RestartError("there is a new generation of it") from error
            raise

    def _stat(self) -> Facts:
        parts = urlsplit(self.uri)
        generation = int(parts.fragment) if parts.fragment.isdecimal() else None
        bucket = self.cloud.client().bucket(parts.netloc)
        blob = bucket.blob(unquote(parts.path[1:]), generation=generation)
        blob.reload(timeout=self.patience_s, retry=None)
        self.media[str(blob.generation)] = blob.media_link
        return _facts(blob)


class _Memory:
    """Takes bytes, as long as they are not too many: what is stored compressed comes unpacked."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self._limit = limit

    def write(self, chunk: bytes) -> int:
        if len(self.data) + len(chunk) > self._limit:
            raise TooLargeError(self._limit)
        self.data += chunk
        return len(chunk)

    def tell(self) -> int:
        return len(self.data)


def _facts(blob: Blob) -> Facts:
    generation = int(blob.generation)
    metadata = dict(blob.metadata or {})
    return Facts(blob.size, str(generation), 64, generation, blob.content_type, metadata)


def _credentials(scope: str) -> Credentials:
    if os.environ.get("STORAGE_EMULATOR_HOST"):
        return AnonymousCredentials()
    try:
        return google.auth.default(scopes=(scope,))[0]
    except DefaultCredentialsError:
        return AnonymousCredentials()


def translating(call: Callable[[], T]) -> T:
    """The result of a call of the library, or its failure in our words.

    Raises:
        TransientError: it may go better at the next attempt.
        RefusedError: it will not.
    """
    try:
        return call()
    except GoogleAPICallError as error:
        reason = f"HTTP {error.code} {error.message}"
        if error.code in {408, 429} or (error.code or 500) >= 500:
            asked = getattr(error.response, "headers", {}).get("Retry-After", "")
            raise _unanswered(reason, retry_after(asked)) from error
        raise _refused(error.code, reason) from error
    except RetryError as error:  # of calls that are tried again by the library
        raise _unanswered(str(error.cause)) from error
    except (SSLError, RefreshError, InvalidOperation) as error:
        raise _refused(None, str(error)) from error
    except (RequestException, GoogleAuthError, OSError) as error:
        raise _unanswered(str(error)) from error


def _unanswered(reason: str, retry_after_s: float = 0.0) -> TransientError:
    return TransientError(reason, retry_after_s, "the store does not answer")


def _refused(status: int | None, reason: str) -> RefusedError:
    match status:
        case 404:
            return NotFoundError(reason, "There is nothing at the URI.")
        case 412:
            return ChangedError(reason)
        case 401 | 403 | None:
            return RefusedError(reason, "The store does not let Ember do this with the URI.")
    return MalformedError(reason, "The store does not understand the URI.")
