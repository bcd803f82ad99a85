"""Where result events go: the platform names it (`K_SINK`), so it is trusted."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING

import aiohttp

from function.problems import RetryLaterError
from warmup.objects.urls import exact
from warmup.retry import Patience, retry_after

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.background.events.event import CloudEvent

_TRIES_AGAIN = 3
_TIMEOUT_S = 10.0


class EventSink:
    """Sends events in binary mode.

    Args:
        url: where to.
        extensions: attributes that every event gets.
    """

    def __init__(self, url: str, extensions: Mapping[str, str]) -> None:
        self._url, self._extensions = exact(url), extensions
        self._session: aiohttp.ClientSession | None = None

    async def send(self, event: CloudEvent) -> None:
        """Send one event.

        Raises:
            Problem: `sink_unavailable`, after a few tries.
        """
        event = replace(event, more={**event.more, **self._extensions})
        headers, body = event.binary()
        patience = Patience(_TRIES_AGAIN)
        while True:
            asked_s, reason = 0.0, ""
            try:
                async with self._connected().post(self._url, data=body, headers=headers) as answer:
                    if answer.status < 300:
                        return
                    asked_s = retry_after(answer.headers.get("Retry-After", ""))
                    reason = f"it answers {answer.status}"
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                reason = type(error).__name__
            wait_s = patience.wait_s(0, asked_s)
            if wait_s is None:
                detail = f"The result event cannot be sent: {reason}."
                raise RetryLaterError("sink_unavailable", detail, 5)
            await asyncio.sleep(wait_s)

    async def close(self) -> None:
        """Close its connections."""
        if self._session:
            await self._session.close()

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=ssl.create_default_context()),
                timeout=aiohttp.ClientTimeout(_TIMEOUT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session
