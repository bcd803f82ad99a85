"""Settings of what requests bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warmup.settings.readers import amount, folders, networks, places, seconds, whole, words
from warmup.settings.variables import variable

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """How large photos and clips may be."""

    max_pixels: int = variable(
        50_000_000,
        amount(1_000_000),
        "The most pixels (width × height) that an uploaded image may have.",
        shown_default="50M",
    )
    clip_max_s: float = variable(
        300.0, seconds(1, 86400), "The most seconds that a video or an animation may last."
    )
    clip_max_pixels: int = variable(
        9_000_000,
        amount(1_000_000),
        "The most pixels (width × height) that a frame of a video or an animation may have.",
        shown_default="9M",
    )
    clip_max_frames: int = variable(
        20_000, whole(1, 10_000_000), "The most frames that a video or an animation may have."
    )
    clip_max_bytes: int = variable(
        512 * 1024**2,
        amount(1024),
        "The most bytes that the file of a video or an animation may have, where it comes as a file"
        " and not in a request.",
        shown_default="512MiB",
    )
    clip_direct_pixels: int = variable(
        20_000_000,
        amount(1_000_000),
        "The most pixels, those of all frames together, of an animation that `POST /v1/swap`"
        " answers at once; longer ones need a job.",
        shown_default="20M",
    )


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """How large requests may be, how many may wait, and how long."""

    max_body_bytes: int = variable(
        64 * 1024**2,
        amount(1024),
        "The most bytes that the body of a request may have.",
        shown_default="64MiB",
    )
    max_bodies_bytes: int = variable(
        512 * 1024**2,
        amount(1024),
        "The most bytes that the bodies of all requests at hand may have together, those that are"
        " announced included; further requests are answered 503. One body always has room.",
        shown_default="512MiB",
    )
    queue_limit: int = variable(
        128,
        whole(1, 100_000),
        "How many requests of one lane may wait for their turn; further ones are answered 503.",
    )
    request_timeout_s: float = variable(
        120.0,
        seconds(1, 3600),
        "How long a request may take, from its head to its answer; `Request-Timeout` may ask for"
        " less. It has to be shorter than any timeout of the platform.",
    )
    body_timeout_s: float = variable(
        60.0,
        seconds(1, 3600),
        "How long a client may take to send the body of a request.",
    )
    degrade: tuple[str, ...] = variable(
        (),
        words("quick-search", "no-enhancer", "smaller-boost", "refuse-bulk"),
        "What is done less well while requests would wait too long, the first thing first.",
        shown_default="none",
    )
    degrade_wait_s: float = variable(
        2.0,
        seconds(0.05, 600),
        "The wait in the lane `standard` that leads to the next of `EMBER_DEGRADE`.",
    )
    answer_timeout_s: float = variable(
        60.0,
        seconds(0.1, 3600),
        "How long a client may take to receive an answer.",
    )


@dataclass(frozen=True, slots=True)
class UriSettings:
    """What URIs may lead to."""

    uri_timeout_s: float = variable(
        30.0,
        seconds(1, 3600),
        "How long it may take to get what is behind a URI, with all tries.",
    )
    uri_networks: tuple[IPv4Network | IPv6Network, ...] = variable(
        (),
        networks(),
        "Networks that are not public and that `https://` and `http://` URIs may lead to"
        " nevertheless; all other `http://` URIs, and private addresses, are refused.",
        shown_default="none",
    )
    uri_folders: tuple[Path, ...] = variable(
        (),
        folders(),
        "Folders that `file://` URIs may lead into.",
        shown_default="none",
    )
    uri_buckets: tuple[str, ...] = variable(
        (),
        places(),
        "The buckets that `gs://` URIs of requests may name, each with the beginning of a name if"
        " wanted, like `photos` or `photos/people/`; `*` is every bucket that Ember may read, as"
        " it reads them with its own credentials. Events are not bound by it.",
        shown_default="none",
    )
