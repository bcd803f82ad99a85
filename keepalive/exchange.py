"""One HTTP request and its answer, within a time limit: what every check is made of."""

from __future__ import annotations

import time
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

if TYPE_CHECKING:
    from collections.abc import Mapping
    from email.message import Message
    from http.client import HTTPResponse

_MOST_BYTES = 1024 * 1024
_CHUNK = 64 * 1024


class Unreachable(Exception):
    """No answer that an Ember server would give; the text says what happened instead."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    Attributes:
        status: the HTTP status.
        headers: those of the answer.
        body: all of it.
        latency_s: seconds from asking to the whole answer, connecting included.
    """

    status: int
    headers: Message
    body: bytes
    latency_s: float


class _Stay(HTTPRedirectHandler):
    """Follows nothing: the headers that prove who asks are for one server."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener = build_opener(_Stay)


def exchange(
    url: str,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    most_bytes: int = _MOST_BYTES,
) -> Reply:
    """Ask once: GET, or POST when there is a body.

    Args:
        url: an http or https address.
        timeout_s: how long to wait for the connection, for the head and for the body.
        headers: further request headers.
        body: what to send.
        most_bytes: of the answer's body, the most to read.

    Raises:
        Unreachable: nothing answers in time, or something that does not speak HTTP, or it sends
            the request elsewhere.
    """
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ValueError(f"{url!r} is not an http or https address")
    request = Request(url, body, {"User-Agent": "ember-ping", **(headers or {})})  # noqa: S310
    began = time.perf_counter()
    try:
        try:
            answer = _opener.open(request, timeout=timeout_s)
        except HTTPError as error:
            answer = error
        with answer:
            content = _read(answer, began + timeout_s, most_bytes)
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise Unreachable(getattr(reason, "strerror", None) or str(reason)) from None
    if 300 <= answer.status < 400:
        target = answer.headers.get("Location")
        raise Unreachable(f"it answers {answer.status}; the address to ask is {target}")
    return Reply(answer.status, answer.headers, content, time.perf_counter() - began)


def _read(answer: HTTPResponse | HTTPError, until: float, most_bytes: int) -> bytes:
    content = b""
    while len(content) < most_bytes and (more := answer.read1(_CHUNK)):
        content += more
        if time.perf_counter() > until:
            raise TimeoutError("timed out")
    return content
