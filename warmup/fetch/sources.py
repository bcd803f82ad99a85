"""Which source a URI means; connections are shared by all, and opened when the first needs them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from warmup.failures import UnavailableError
from warmup.fetch.local import LocalSource

if TYPE_CHECKING:
    import aiohttp
    from google.cloud import storage

    from warmup.fetch.source import Source
    from warmup.file import File
    from warmup.settings import WarmupSettings


class Sources:
    """Sources for the time of one prefetch: `async with Sources(settings) as sources`."""

    def __init__(self, settings: WarmupSettings) -> None:
        self._patience_s = settings.fetch_stall_s
        self._session: aiohttp.ClientSession | None = None
        self._client: storage.Client | None = None
        self._lock = threading.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()
        if self._client:
            self._client.close()

    def of(self, file: File) -> Source:
        """The source of a file.

        Raises:
            UnavailableError: what reads it is not installed.
        """
        match urlsplit(file.uri).scheme:
            case "file":
                return LocalSource(file.uri)
            case "gs":
                return self._gcs(file)
            case _:
                return self._http(file)

    def _http(self, file: File) -> Source:
        from warmup.fetch.http import HttpSource, session

        self._session = self._session or session(self._patience_s)
        return HttpSource(file.uri, self._session)

    def _gcs(self, file: File) -> Source:
        try:
            from warmup.fetch.gcs import GcsSource, client
        except ModuleNotFoundError as error:
            raise UnavailableError(
                f"{file.name}: {file.source} needs {error.name}: pip install 'ember-function[gcs]'"
            ) from error

        def shared() -> storage.Client:
            with self._lock:
                self._client = self._client or client()
                return self._client

        return GcsSource(file.uri, shared, self._patience_s)
