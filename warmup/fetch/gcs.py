"""Files from Google Cloud Storage, with Google's own library.

STORAGE_EMULATOR_HOST leads to an emulator, as it does everywhere. Without credentials, what is
public can still be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

from google.api_core.exceptions import GoogleAPICallError
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, RefreshError
from google.cloud import storage
from requests.exceptions import RequestException, SSLError
from urllib3.exceptions import HTTPError

from warmup.fetch.retry import retry_after
from warmup.fetch.source import Facts, RefusedError, RestartError, TransientError
from warmup.fetch.thread import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from warmup.fetch.source import Sink


T = TypeVar("T")


def client() -> storage.Client:
    """A client for every `GcsSource`; it may look for credentials over the network."""
    try:
        return storage.Client()
    except DefaultCredentialsError:
        return storage.Client.create_anonymous_client()


@dataclass(frozen=True, slots=True)
class GcsSource:
    """One `gs://bucket/name` URI; `gs://bucket/name#generation` for exactly that one.

    Attributes:
        uri: the URI.
        client: makes or has the client.
        patience_s: how long a connection may take to open, and be silent.
    """

    uri: str
    client: Callable[[], storage.Client]
    patience_s: float

    async def stat(self) -> Facts:
        """Size, and the generation as tag."""
        return await in_thread(lambda: self._guarded(self._stat))

    async def read(self, facts: Facts, sink: Sink) -> None:
        """Download the range that the sink lacks, of exactly that generation."""
        await in_thread(lambda: self._guarded(lambda: self._read(facts, sink)))

    def _blob(self) -> storage.Blob:
        parts = urlsplit(self.uri)
        generation = int(parts.fragment) if parts.fragment.isdigit() else None
        bucket = self.client().bucket(parts.netloc)
        return bucket.blob(unquote(parts.path[1:]), generation=generation)

    def _stat(self) -> Facts:
        blob = self._blob()
        blob.reload(timeout=self.patience_s, retry=None)
        return Facts(blob.size, str(blob.generation), streams=64)

    def _read(self, facts: Facts, sink: Sink) -> None:
        self._blob().download_to_file(
            sink,
            start=sink.at,
            end=sink.stop - 1,
            raw_download=True,
            if_generation_match=int(facts.tag),
            timeout=self.patience_s,
            checksum=None,
            retry=None,
        )

    def _guarded(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except GoogleAPICallError as error:
            raise _translated(error) from error
        except (SSLError, RefreshError) as error:
            raise RefusedError(str(error)) from error
        except (RequestException, HTTPError, GoogleAuthError, OSError) as error:
            raise TransientError(str(error)) from error


def _translated(error: GoogleAPICallError) -> Exception:
    reason = f"HTTP {error.code} {error.message}"
    if error.code == 412:
        return RestartError("it has changed: there is a new generation")
    if error.code in {408, 429} or (error.code or 500) >= 500:
        asked = getattr(error.response, "headers", {}).get("Retry-After", "")
        return TransientError(reason, retry_after(asked))
    return RefusedError(reason)
