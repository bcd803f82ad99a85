"""Asking one replica whether it is ready: the smallest thing that keeps it warm."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from keepalive.exchange import Unreachable, exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PATH = "/readyz"
_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Readiness:
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
        ValueError: it is no http or https address, or has a password in it.
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if "@" in parts.netloc:
        raise ValueError("the address has a user name in it; send an Authorization header instead")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{url!r} is not an http or https address")
    path = parts.path if parts.path.strip("/") else PATH
    return urlunsplit(parts._replace(path=path))


def ping(url: str, timeout_s: float = 5.0, headers: Mapping[str, str] | None = None) -> Readiness:
    """Ask once.

    Args:
        url: as from `readyz`.
        timeout_s: how long to wait for the connection and then for each part of the answer.
        headers: further request headers.

    Raises:
        Unreachable: nothing answers, or something that is no Ember.
    """
    reply = exchange(url, timeout_s, headers)
    try:
        answer = json.loads(reply.body)
        phase = str(answer["phase"])
    except (ValueError, TypeError, KeyError):
        raise Unreachable(f"it answers {reply.status}, but not as Ember does") from None
    waiting_for = answer.get("waiting_for")
    return Readiness(
        reply.status == 200, phase, str(waiting_for) if waiting_for else None, reply.latency_s
    )


def wait(
    ask: Callable[[float], Readiness],
    timeout_s: float,
    wait_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Readiness:
    """Ask until it is ready or the time is up.

    A platform that starts a service from zero holds the request until there is a replica, so each
    try may take all of the time that is left.

    Args:
        ask: asks once; takes the seconds to wait for the answer.
        timeout_s: how long the only try, or the last one, may take.
        wait_s: how long to ask again; 0 asks once.
        clock: tells seconds.
        sleep: waits that many.

    Returns:
        The first answer that says ready, else the last one.

    Raises:
        Unreachable: the last try found no Ember.
    """
    end = clock() + wait_s
    while True:
        failure = None
        try:
            answer = ask(max(timeout_s, end - clock()))
            if answer.ready:
                return answer
        except Unreachable as error:
            failure = error
        left = end - clock()
        if left <= 0:
            if failure:
                raise failure
            return answer
        sleep(min(_PAUSE_S, left))
