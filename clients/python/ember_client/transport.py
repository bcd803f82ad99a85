"""Steps of plans to httpx, and what comes of it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ember_client.exchange import Answer, Lost

if TYPE_CHECKING:
    from ember_client.exchange import Send

_CONNECT_S = 10.0
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


def request(url: str, step: Send) -> dict[str, Any]:
    """The arguments of httpx for a step; `url` is the server's."""
    call = step.call
    connect_s = min(step.timeout_s, _CONNECT_S)
    return {
        "method": call.method,
        "url": url.rstrip("/") + call.path,
        "headers": call.headers,
        "params": call.params,
        "data": call.fields or None,
        "files": [(field, (name, data)) for field, name, data in call.files] or None,
        "json": call.json,
        "timeout": httpx.Timeout(step.timeout_s, connect=connect_s),
    }


def answer(response: httpx.Response) -> Answer:
    """A whole response."""
    return Answer(response.status_code, dict(response.headers), response.content)


def lost(error: httpx.TransportError) -> Lost:
    """What failed on the way."""
    return Lost(error, sent=not isinstance(error, _NOT_SENT))
