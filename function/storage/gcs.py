"""`gs://bucket/name` URIs; `gs://bucket/name#generation` is exactly that generation.

Google's library does it, in threads. STORAGE_EMULATOR_HOST leads to an emulator. Without
credentials, what is public can still be read.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

from function.problems import Problem
from function.storage import names
from function.storage.place import (
    ChangedError,
    Facts,
    Object,
    forbidden,
    missing_is_fine,
    not_found,
    too_large,
)
from warmup.objects.gcs import Cloud, translating
from warmup.objects.source import RefusedError, TransientError
from warmup.objects.thread import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.cloud.storage import Blob

    from function.storage.place import Take

log = logging.getLogger("ember.storage")

T = TypeVar("T")

_THREADS = 32
_SCOPES = ("https://www.googleapis.com/auth/devstorage.read_write",)


class Gcs:
    """See `Place`.

    Args:
        silence_s: how long an answer may take to come.
    """

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s
        self._cloud = Cloud(_SCOPES)
        self._places = asyncio.Semaphore(_THREADS)

    async def stat(self, uri: str) -> Facts:
        """See `Place`."""
        return await self._do(lambda: _facts(self._looked_at(uri)))

    async def read(self, uri: str, limit: int, take: Take) -> Object:
        """See `Place`."""
        facts = await self.stat(uri)
        if (facts.size or 0) > limit:
            raise too_large(limit, facts.size)
        take(facts.size or 0)
        sink = _Sink(limit)

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
        """See `Place`."""

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
        """See `Place`."""
        with missing_is_fine():
            await self._do(lambda: self._blob(uri).delete(timeout=self._silence_s, retry=None))

    async def close(self) -> None:
        """See `Place`."""
        self._cloud.close()

    async def _do(self, work: Callable[[], T]) -> T:
        try:
            async with self._places:
                return await in_thread(lambda: translating(work))
        except TransientError as error:
            log.warning("the store fails", extra={"reason": str(error)})
            raise TransientError("the store does not answer", error.retry_after_s) from error
        except RefusedError as error:
            if error.status == 404:
                raise not_found() from None
            if error.status == 412:
                raise ChangedError from None
            if error.status in {401, 403, None}:
                raise forbidden("The store does not let Ember do this with the URI.") from error
            raise Problem("bad_value", "The store does not understand the URI.") from error

    def _looked_at(self, uri: str) -> Blob:
        blob = self._blob(uri)
        blob.reload(timeout=self._silence_s, retry=None)
        return blob

    def _blob(self, uri: str, generation: int | None = None) -> Blob:
        bucket, name, wanted = names.parse(uri)
        return self._cloud.client().bucket(bucket).blob(name, generation=generation or wanted)


class _Sink:
    """Takes bytes, as long as they are not too many: what is stored compressed comes unpacked."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self._limit = limit

    def write(self, chunk: bytes) -> int:
        if len(self.data) + len(chunk) > self._limit:
            raise too_large(self._limit)
        self.data += chunk
        return len(chunk)

    def tell(self) -> int:
        return len(self.data)


def _facts(blob: Blob) -> Facts:
    return Facts(blob.size, blob.content_type, int(blob.generation), dict(blob.metadata or {}))
