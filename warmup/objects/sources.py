"""Which source a URI means; connections are shared by all, and opened when the first needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from warmup.objects.local import FileSource

if TYPE_CHECKING:
    import aiohttp

    from warmup.objects.gcs import Cloud
    from warmup.objects.protocol import Source


class Sources:
    """Sources for the time of one prefetch: `async with Sources(10.0) as sources`.

    Args:
        patience_s: how long a connection may take to open, and be silent.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._session: aiohttp.ClientSession | None = None
        self._cloud: Cloud | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()
        if self._cloud:
            self._cloud.close()

    def of(self, uri: str) -> Source:
        """The source that a URI means.

        Raises:
            ModuleNotFoundError: what reads it is not installed.
        """
        match urlsplit(uri).scheme:
            case "file":
                return FileSource(uri)
            case "gs":
                from warmup.objects.gcs import Cloud, GcsSource

                self._cloud = self._cloud or Cloud()
                return GcsSource(uri, self._cloud, self._connected(), self._patience_s)
            case _:
                from warmup.objects.http import HttpSource

                return HttpSource(uri, self._connected())

    def _connected(self) -> aiohttp.ClientSession:
        from warmup.objects.http import session

        self._session = self._session or session(self._patience_s)
        return self._session
