"""One POST that says how a job has ended, signed as Standard Webhooks has it.

https://www.standardwebhooks.com: the id stays the same for every try, so a receiver can tell one
that comes twice; what is signed is `id.timestamp.body`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.problems import ObjectNotFoundError, Problem
from function.telemetry import trace_context
from warmup.objects.errors import TransientError
from warmup.settings.readers import webhook_secret

if TYPE_CHECKING:
    import random

    from function.background.jobs.job import Callback
    from function.storage.storage import Storage

_PAUSES_S = (5.0, 30.0, 120.0, 600.0, 1800.0, 7200.0, 18_000.0)
_GONE = 410


@dataclass(frozen=True, slots=True)
class SentCallback:
    """What became of one try: it is `done`, or `hopeless`, or else to be tried again."""

    done: bool
    note: str = ""
    hopeless: bool = False


def secret(text: str) -> bytes:
    """The bytes of a secret like `whsec_` and base64.

    Raises:
        ValueError: it is none, or is shorter than 24 bytes or longer than 64.
    """
    return base64.b64decode(webhook_secret().read(text).removeprefix("whsec_"))


def headers(key: bytes, id: str, timestamp: int, body: bytes) -> dict[str, str]:  # noqa: A002
    """The headers of a callback.

    Args:
        key: the secret.
        id: the same for every try.
        timestamp: in seconds of Unix time, of this try.
        body: of the request.
    """
    signed = f"{id}.{timestamp}.".encode() + body
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def pause_s(tries: int, rng: random.Random) -> float | None:
    """How long to wait after so many tries; None to give up. The jitter is up to a fifth."""
    if tries > len(_PAUSES_S):
        return None
    return _PAUSES_S[tries - 1] * rng.uniform(1.0, 1.2)


async def send(
    storage: Storage,
    callback: Callback,
    id: str,  # noqa: A002
    timestamp: int,
    body: bytes,
) -> SentCallback:
    """Try once, at public addresses only, and without following redirects."""
    signed = headers(secret(callback.secret), id, timestamp, body)
    if here := trace_context.current.get():
        signed |= here.headers
    try:
        status = await storage.post(callback.uri, body, signed)
    except TransientError as error:
        return SentCallback(done=False, note=str(error))
    except Problem as problem:
        hopeless = not isinstance(problem, ObjectNotFoundError)  # a name that may be known again
        return SentCallback(done=False, note=problem.detail, hopeless=hopeless)
    if 200 <= status < 300:
        return SentCallback(done=True)
    return SentCallback(done=False, note=f"it answers {status}", hopeless=status == _GONE)
