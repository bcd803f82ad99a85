"""Callbacks of jobs: proven to be Ember's, then read (https://www.standardwebhooks.com)."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ember_client.errors import EmberError
from ember_client.reading import read
from ember_client.results import Job

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOLERANCE_S = 300.0


class InvalidSignature(EmberError):
    """A callback is not from whoever has the secret, or is too old: do nothing for it."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A callback.

    Attributes:
        id: the same for every try; one that comes twice has the same.
        type: `job.` and the state that the job ended with.
        timestamp: when it was told.
        job: its state then.
    """

    id: str
    type: str
    timestamp: datetime
    job: Job


def open_webhook(
    body: bytes, headers: Mapping[str, str], secret: str, *, now: float | None = None
) -> Webhook:
    """Check a callback, and read it.

    Args:
        body: of the request, as it came.
        headers: of the request, in any case.
        secret: as in `callback_secret`, or the operator's.
        now: seconds of Unix time; by default of this machine. The callback may be five minutes
            away from it.

    Raises:
        InvalidSignature: it cannot be trusted.
        ValueError: the secret is none.
    """
    named = {name.lower(): value for name, value in headers.items()}
    key = b64decode(secret.removeprefix("whsec_"), validate=True)
    try:
        id, timestamp = named["webhook-id"], int(named["webhook-timestamp"])  # noqa: A001
        signatures = named["webhook-signature"].split()
    except (KeyError, ValueError) as error:
        raise InvalidSignature("the headers of a callback are not all there") from error
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    good = f"v1,{b64encode(digest).decode()}".encode()
    if not any(hmac.compare_digest(good, each.encode()) for each in signatures):
        raise InvalidSignature("the signature is not that of the secret")
    if abs((time.time() if now is None else now) - timestamp) > _TOLERANCE_S:
        raise InvalidSignature("the callback is too old, or a clock is wrong")
    event = json.loads(body)
    told = datetime.fromisoformat(event["timestamp"])
    return Webhook(id, event["type"], told, read(Job, event["data"]))
