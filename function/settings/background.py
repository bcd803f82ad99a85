"""Settings of swaps that no connection waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warmup.settings.readers import (
    amount,
    extensions,
    file,
    folder_uri,
    names,
    places,
    seconds,
    web_url,
    webhook_secret,
    whole,
)
from warmup.settings.variables import variable

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class EventSettings:
    """Events: uploads that are swapped by themselves."""

    events: Path | None = variable(
        None,
        file(),
        "The TOML file that says what is done with uploads that `POST /` tells of.",
        shown_default="none: no events are taken in",
    )
    event_ack_s: float = variable(
        8.0,
        seconds(0.1, 3600),
        "After how long an event is answered that is not done yet. It has to be shorter than the"
        " timeout of whoever delivers it, which is 10 seconds for Pub/Sub.",
    )
    event_senders: tuple[str, ...] = variable(
        (),
        names(),
        "Who may send events, where `EMBER_AUTH` is not none: subjects of keys or tokens, and"
        " addresses like `email:ann@example.com` that the issuer has verified.",
        shown_default="none",
    )
    event_lease_s: float = variable(
        30.0,
        seconds(1, 3600),
        "After how long without a sign of life another replica takes an event over.",
    )
    event_sink: str | None = variable(
        None,
        web_url(),
        "Where result events go.",
        shown_default="none: they are the answer",
        fallback="K_SINK",
    )
    event_overrides: tuple[tuple[str, str], ...] = variable(
        (),
        extensions(),
        "Attributes that result events get.",
        shown_default="none",
        fallback="K_CE_OVERRIDES",
    )


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Jobs: swaps that no connection waits for."""

    output_buckets: tuple[str, ...] = variable(
        (),
        places(),
        "The buckets that jobs may write results to, in the form of `EMBER_URI_BUCKETS`.",
        shown_default="none",
    )
    job_limit: int = variable(
        1000,
        whole(1, 1_000_000),
        "How many jobs may be open, of all replicas that share a Redis; further ones are answered"
        " 503.",
    )
    job_keep_s: float = variable(
        86_400.0,
        seconds(1, 366 * 86_400),
        "How long a job and its results are kept after its end; a job that has not ended by then"
        " is cancelled. The photos that came with it go when it ends.",
    )
    job_lease_s: float = variable(
        20.0,
        seconds(1, 3600),
        "After how long without a sign of life another replica takes a job over.",
    )
    job_photos: str | None = variable(
        None,
        folder_uri(),
        "Where the photos of jobs are kept, reachable by all replicas.",
        shown_default="Redis where there is one, else memory",
    )
    job_bytes: int = variable(
        256 * 1024**2,
        amount(1024),
        "The most bytes of photos and results that are kept for jobs: in the memory of a replica,"
        " or in Redis, of all replicas together, and there never more than a half of its"
        " `maxmemory`. Further jobs are answered 503.",
        shown_default="256MiB",
    )
    job_caller_bytes: int | None = variable(
        None,
        amount(1024),
        "The most bytes of them that one caller may have, where callers say who they are; further"
        " jobs are answered 429.",
        shown_default="a half of all, or as much as one request may bring",
    )
    job_streams: int = variable(
        500,
        whole(1, 100_000),
        "How many streams of events of jobs a replica has open; further ones are answered 503.",
    )
    job_caller_streams: int = variable(
        50,
        whole(1, 100_000),
        "How many of them one caller may have open in a replica, where callers say who they are;"
        " further ones are answered 429.",
    )
    webhook_secret: str | None = variable(
        None,
        webhook_secret(),
        "Signs the callbacks of jobs that bring no secret of their own.",
        shown_default="none: they have to bring one",
        secret=True,
    )
