"""A tiny swap: what a user would get, asked for with two small photos that travel with this."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import dataclass
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from keepalive.exchange import Reply, Unreachable, exchange
from keepalive.pinger import ping as pinging

if TYPE_CHECKING:
    from collections.abc import Mapping

_WIDTH, _HEIGHT = 164, 192
"""Pixels of `photos/target.jpg`, and so of the result."""
_BOUNDARY = "ember-ping-5f0c7a1e"
_NOT_NOW = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
_OVERLOADED = "overloaded"
_MARKS = {"Ember-Lane": "bulk", "Ember-Ping": "1"}
"""It goes after everybody's requests, and is not counted as one of them; see `docs/http.md`."""


class SwapBusy(Exception):
    """The server refuses work that nobody waits for, as it has too much; the text says so."""


class SwapWrong(Exception):
    """The server answers, but not with the swap; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class PingSwap:
    """A swap that succeeded.

    Attributes:
        latency_s: seconds from asking to the whole answer, connecting included.
        before: identity distance of the original face to the source; `docs/http.md` has more.
        after: that of the swapped face to the source, which is smaller.
        warnings: codes of what may look wrong.
        degraded: the models that run on something else than was wanted.
        request_id: finds the request in the server's log.
    """

    latency_s: float
    before: float
    after: float
    warnings: tuple[str, ...]
    degraded: tuple[str, ...]
    request_id: str | None


def address(readyz: str) -> str:
    """Where to post a swap to the server that answers readiness at `readyz`.

    Raises:
        ValueError: the address names another path, so nobody knows.
    """
    base = readyz.removesuffix(pinging.PATH)
    if base == readyz:
        raise ValueError(f"a swap needs an address that ends in {pinging.PATH}, or in no path")
    return f"{base}/v1/swap"


def swap(url: str, timeout_s: float, headers: Mapping[str, str] | None = None) -> PingSwap:
    """Ask for one swap and look at the result.

    Args:
        url: as from `address`.
        timeout_s: how long to wait for the connection and then for each part of the answer.
        headers: further request headers.

    Raises:
        Unreachable: nothing answers, or it does not serve.
        SwapBusy: it has too much to do.
        SwapWrong: the answer is not the swap.
    """
    asked = {
        **_MARKS,
        **(headers or {}),
        "Accept": "application/json",
        "Content-Type": f"multipart/form-data; boundary={_BOUNDARY}",
    }
    reply = exchange(url, timeout_s, asked, _form())
    if reply.status != HTTPStatus.OK:
        code, words = _problem(reply)
        no: type[Exception] = SwapWrong
        if reply.status in _NOT_NOW:
            no = SwapBusy if code == _OVERLOADED else Unreachable
        raise no(f"the swap was answered {reply.status}{words}")
    try:
        report = json.loads(reply.body)
        (face,) = report["faces"]
        before, after = (float(face["identity"][when]) for when in ("before", "after"))
        image = b64decode(report["image"]["base64"], validate=True)
        size = (report["width"], report["height"])
    except (ValueError, TypeError, KeyError):
        raise SwapWrong("the swap was answered, but not as Ember does") from None
    if size != (_WIDTH, _HEIGHT) or not (image[:2] == b"\xff\xd8" and image[-2:] == b"\xff\xd9"):
        raise SwapWrong("the swap was answered with another image than the one that was sent")
    if not after < before:
        raise SwapWrong(f"the face was not swapped: identity distance {before:g}, then {after:g}")
    return PingSwap(
        reply.latency_s,
        before,
        after,
        _listed(reply, "Ember-Warnings"),
        _listed(reply, "Ember-Degraded"),
        reply.headers.get("Ember-Request-Id"),
    )


def _form() -> bytes:
    """The fields `source`, `target` and `format` as multipart/form-data."""
    photos = files("keepalive") / "photos"
    form = b""
    for name in ("source", "target"):
        photo = (photos / f"{name}.jpg").read_bytes()
        head = f'Content-Disposition: form-data; name="{name}"; filename="{name}.jpg"'
        form += f"--{_BOUNDARY}\r\n{head}\r\n\r\n".encode() + photo + b"\r\n"
    head = 'Content-Disposition: form-data; name="format"'
    return form + f"--{_BOUNDARY}\r\n{head}\r\n\r\njpeg\r\n--{_BOUNDARY}--\r\n".encode()


def _listed(reply: Reply, header: str) -> tuple[str, ...]:
    words = reply.headers.get(header, "").split(",")
    return tuple(word for word in map(str.strip, words) if word)


def _problem(reply: Reply) -> tuple[str, str]:
    """The code of a problem, and words that name it and the request."""
    try:
        problem: Any = json.loads(reply.body)
        code = str(problem["code"])
        return code, f" {code} (request {problem['request_id']})"
    except (ValueError, TypeError, KeyError):
        return "", ""
