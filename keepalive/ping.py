"""Asking one replica whether it is ready: the smallest thing that keeps it warm."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import urlopen

_MOST_BYTES = 64 * 1024


class Unreachable(Exception):
    """No answer that an Ember server would give; the text says what happened instead."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What `/readyz` said.

    Attributes:
        ready: whether the replica takes traffic.
        phase: where it is in its life.
        waiting_for: what it still needs, in words, if it said so.
        latency_s: seconds from asking to the whole answer, connecting included.
    """

    ready: bool
    phase: str
    waiting_for: str | None
    latency_s: float


def readyz(url: str) -> str:
    """The address to ask for a server's address; one that names a path itself stays as it is.

    Raises:
        ValueError: it is no http or https address.
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{url!r} is not an http or https address")
    path = parts.path if parts.path.strip("/") else "/readyz"
    return urlunsplit(parts._replace(path=path))


def ping(url: str, timeout_s: float = 5.0) -> Answer:
    """Ask once.

    Args:
        url: as from `readyz`.
        timeout_s: how long to wait for the connection and then for each piece of the answer.

    Raises:
        Unreachable: nothing answers, or something that is no Ember.
    """
    began = time.perf_counter()
    try:
        with urlopen(url, timeout=timeout_s) as answer:  # noqa: S310 - `readyz` checks the scheme
            status, body = answer.status, answer.read(_MOST_BYTES)
    except HTTPError as error:
        with error:
            status, body = error.code, error.read(_MOST_BYTES)
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise Unreachable(getattr(reason, "strerror", None) or str(reason)) from None
    latency_s = time.perf_counter() - began
    try:
        told = json.loads(body)
        phase = str(told["phase"])
    except (ValueError, TypeError, KeyError):
        raise Unreachable(f"it answers {status}, but not as Ember does") from None
    waiting_for = told.get("waiting_for")
    return Answer(status == 200, phase, str(waiting_for) if waiting_for else None, latency_s)
