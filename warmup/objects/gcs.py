"""Files from Google Cloud Storage.

Google's library finds credentials and objects. The bytes come over the connections that all other
files use, for those can be given up when they stall, and cost half of the library's processor time.

STORAGE_EMULATOR_HOST leads to an emulator, as it does everywhere. Without credentials, what is
public can still be read.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

import google.auth
from google.api_core.exceptions import GoogleAPICallError
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

from warmup.objects.http import HttpSource
from warmup.objects.retry import retry_after
from warmup.objects.source import Facts, RefusedError, RestartError, TransientError
from warmup.objects.thread import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import aiohttp
    from google.auth.credentials import Credentials

    from warmup.objects.source import Sink

T = TypeVar("T")

_TAGS = ("x-goog-generation",)
_READ = ("https://www.googleapis.com/auth/devstorage.read_only",)


class Cloud:
    """Who we are, found out when it is first asked, and the client that says so.

    Args:
        scopes: what we want to be allowed.
    """

    def __init__(self, scopes: Sequence[str] = _READ) -> None:
        self._scopes = scopes
        self._lock = threading.Lock()
        self._credentials: Credentials | None = None
        self._client: storage.Client | None = None

    def client(self) -> storage.Client:
        """The client; looking for credentials may use the network."""
        with self._lock:
            if self._client is None:
                self._credentials = _credentials(self._scopes)
                self._client = storage.Client(project="none", credentials=self._credentials)
            return self._client

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


@dataclass(frozen=True, slots=True)
class GcsSource:
    """One `gs://bucket/name` URI; `gs://bucket/name#generation` for exactly that one.

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
        return Facts(blob.size, str(blob.generation), streams=64)


def _credentials(scopes: Sequence[str]) -> Credentials:
    if os.environ.get("STORAGE_EMULATOR_HOST"):
        return AnonymousCredentials()
    try:
        return google.auth.default(scopes=scopes)[0]
    except DefaultCredentialsError:
        return AnonymousCredentials()


def translating(call: Callable[[], T]) -> T:
    """The result of a call of the library, or its failure in our words.

    Raises:
        TransientError: it may go better at the next attempt.
        RefusedError: it will not; with the HTTP status, where there is one.
    """
    try:
        return call()
    except GoogleAPICallError as error:
        reason = f"HTTP {error.code} {error.message}"
        if error.code in {408, 429} or (error.code or 500) >= 500:
            asked = getattr(error.response, "headers", {}).get("Retry-After", "")
            raise TransientError(reason, retry_after(asked)) from error
        raise RefusedError(reason, error.code) from error
    except (SSLError, RefreshError, InvalidOperation) as error:
        raise RefusedError(str(error)) from error
    except (RequestException, GoogleAuthError, OSError) as error:
        raise TransientError(str(error)) from error
