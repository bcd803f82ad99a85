"""Every setting of Ember: environment variables, and nothing else.

They are read here once, at start, and passed on. How one is declared says `variables`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warmup.settings import variables
from warmup.settings.readers import (
    amount,
    choice,
    extensions,
    file,
    folder_uri,
    folders,
    moment,
    names,
    networks,
    origins,
    part_or_amount,
    places,
    seconds,
    secure_url,
    switch,
    text,
    web_url,
    webhook_secret,
    whole,
    words,
)
from warmup.settings.readers import redis_url as redis_address
from warmup.settings.settings import WarmupSettings
from warmup.settings.variables import variable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from ipaddress import IPv4Network, IPv6Network
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings(WarmupSettings):
    """The effective settings; the attribute `max_pixels` is the variable `EMBER_MAX_PIXELS`.

    Those of the warm-up package are among them.
    """

    host: str = variable("127.0.0.1", text(), "The address to listen on.")
    port: int = variable(
        8080,
        whole(0, 65535),
        "The port to listen on; 0 takes a free one.",
        fallback="PORT",
    )
    allow_anonymous: bool = variable(
        False,
        switch(),
        "Whether anybody may call on an address that others can reach, while `EMBER_AUTH` is none:"
        " say so where something in front decides who may.",
        shown_default="false",
    )
    cors_origins: tuple[str, ...] = variable(
        (),
        origins(),
        "The origins of pages elsewhere whose browsers may call (CORS), with commas between them;"
        " `*` is every page. The page of the server itself always may.",
        shown_default="none",
    )
    auth: str = variable(
        "none",
        choice("none", "keys", "jwt"),
        "How callers prove who they are: not at all, with a key of `EMBER_KEYS`, or with a token"
        " (JWT) of the issuer `EMBER_JWT_ISSUER`.",
    )
    keys: Path | None = variable(
        None,
        file(),
        "The file of API keys; `ember keys new` makes a key and its line.",
        shown_default="none",
    )
    jwt_issuer: str | None = variable(
        None, text(), "What `iss` of a token must be.", shown_default="none"
    )
    jwt_audience: str | None = variable(
        None, text(), "What `aud` of a token must have.", shown_default="none"
    )
    jwt_jwks_url: str | None = variable(
        None,
        secure_url(),
        "Where the issuer publishes its public keys (JWKS).",
        shown_default="none",
    )
    jwt_leeway_s: float = variable(
        30.0, seconds(0, 600), "By how much the issuer's clock may differ."
    )
    jwt_tier_claim: str = variable(
        "tier", text(), "Which claim of a token names the caller's tier."
    )
    jwt_lane_claim: str = variable(
        "lane", text(), "Which claim names the most urgent lane, where it is not the tier's."
    )
    policy: Path | None = variable(
        None,
        file(),
        "The TOML file that says what jobs cost and what each tier may have.",
        shown_default="the built-in one",
    )
    redis_url: str | None = variable(
        None,
        redis_address(),
        "The Redis that keeps the tokens, so that replicas share them; `rediss://` for TLS.",
        shown_default="none: each replica keeps its own",
        secret=True,
    )
    jobs_redis_url: str | None = variable(
        None,
        redis_address(),
        "The Redis that keeps jobs and their photos, where that is to be another one than that of"
        " the tokens, so that neither can fill it for the other.",
        shown_default="that of EMBER_REDIS_URL",
        secret=True,
    )
    redis_timeout_s: float = variable(
        0.25,
        seconds(0.01, 10),
        "How long Redis may take to answer one question, once it is sent.",
    )
    quota_fail: str = variable(
        "open",
        choice("open", "closed"),
        "When Redis cannot be asked: with `open` each replica counts by itself, and settles that"
        " when Redis is back; `closed` answers 503 to requests that would cost tokens, as does"
        " either when Redis has no memory left.",
    )
    threads: int | None = variable(
        None,
        whole(1, 1024),
        "How many threads compute at once. When it is set, how a model that takes batches uses them"
        " is not measured: one thread for each inference, that many inferences at once.",
        shown_default="the CPU quota",
    )
    batch_window_ms: int = variable(
        25,
        whole(0, 1000),
        "How long, in milliseconds, a batch may wait for more items while another one is running,"
        " where a model has batch sizes above 1; never with an interactive request in it. With 0 no"
        " batch waits, not even while the CPUs are busy with other steps.",
    )
    backends: tuple[str, ...] = variable(
        ("cpu",),
        words("tensorrt", "cuda", "cpu"),
        "What the models may run on, the most wanted first. A model takes the first that runs it;"
        " `/readyz` says which were passed over, and why.",
        shown_default="cpu",
    )
    allow_degraded: bool = variable(
        False,
        switch(),
        "Whether a model may go from a GPU to the CPU, where `EMBER_BACKENDS` names both. From one"
        " GPU backend to the next it always may. `/readyz` and the header `Ember-Degraded` name"
        " each model that is not on the first.",
        shown_default="false",
    )
    require_gpu: bool = variable(
        False,
        switch(),
        "Whether everything has to run on a GPU, to the last operation of each model.",
        shown_default="false",
    )
    gpus: int = variable(
        1,
        whole(1, 64),
        "How many GPUs this process uses, of those that it can see. Each holds all models and runs"
        " a batch of its own.",
    )
    build_plans: bool = variable(
        False,
        switch(),
        "Whether a replica builds the plans that it lacks, in a process of its own, while the next"
        " of `EMBER_BACKENDS` serves. It needs the full TensorRT, and GPU memory to spare.",
        shown_default="false",
    )
    wait_vram_s: float = variable(
        0.0,
        seconds(0, 86400),
        "How long a start waits until the GPU has room for the models, as when the replica before"
        " has not let go of it yet; then it is tried regardless.",
    )
    cuda_search: str = variable(
        "heuristic",
        choice("heuristic", "exhaustive", "default"),
        "How cuDNN chooses an algorithm for each batch size, on the backend `cuda`: `exhaustive`"
        " tries all, which can take a second each during the warm-up, and may run faster then.",
    )
    cuda_memory: int | None = variable(
        None,
        amount(1),
        "The most bytes of GPU memory that one model's arena may take, on the backend `cuda`.",
        shown_default="any",
    )
    cuda_graphs: bool = variable(
        False,
        switch(),
        "Whether the backend `cuda` records each batch size as a CUDA graph: less work for the CPU,"
        " more memory, and no model that has anything on the CPU.",
        shown_default="false",
    )
    preload: bool = variable(
        True,
        switch(),
        "Whether models are loaded and warmed at start, not by the first request that needs them."
        " `preload = false` in the manifest excepts one model.",
        shown_default="true",
    )
    warmup_requests: int = variable(
        1,
        whole(1, 1000),
        "How many swaps a replica makes, all at once, before it is ready. One is enough for speed;"
        " with one for each thread there is also proof that memory is enough for all of them.",
    )
    warmup_retry_s: float = variable(
        120.0,
        seconds(0, 86400),
        "How long a start that fails is tried again, in pauses from 1 to 30 seconds, before the"
        " process ends; 0 means that it ends at once.",
    )
    heartbeat_s: float = variable(
        30.0,
        seconds(0, 86400),
        "How long a replica is idle before it makes a swap of its own, to stay warm and to know"
        " that it works; 0 means never.",
    )
    stuck_s: float = variable(
        120.0,
        seconds(0, 86400),
        "How long one step of one request may compute before the process counts as stuck, and"
        " `/healthz` as failed; 0 means for ever.",
    )
    memory_soft_limit: float = variable(
        0.95,
        part_or_amount(),
        "How much memory the process may hold, in bytes or as a part of what the container may"
        " hold, before it drains and ends, ahead of the kernel; 0 means any amount.",
        shown_default="0.95",
    )
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
    drain_grace_s: float = variable(
        5.0,
        seconds(0, 3600),
        "How long a replica that is told to stop still takes new requests, because the platform"
        " may send some before it has noticed.",
    )
    drain_timeout_s: float = variable(
        25.0,
        seconds(0, 3600),
        "How long the requests in work may then take to end.",
    )
    pod_created: datetime | None = variable(
        None,
        moment(),
        "When the platform made the pod; the timeline of the start then begins there.",
        shown_default="unknown",
    )
    pod_scheduled: datetime | None = variable(
        None,
        moment(),
        "When the platform had found a node for the pod.",
        shown_default="unknown",
    )
    log_format: str = variable(
        "auto",
        choice("auto", "json", "text"),
        "How log lines look; auto is text on a terminal and JSON elsewhere.",
    )
    log_level: str = variable(
        "info",
        choice("debug", "info", "warning", "error"),
        "The least important log lines that are written.",
    )
    traces: str | None = variable(
        None,
        web_url(),
        "The OpenTelemetry collector that spans are sent to, as OTLP over HTTP, which is its port"
        " 4318. The SDK's other variables (OTEL_…) count as well.",
        shown_default="none: no spans are sent",
        fallback="OTEL_EXPORTER_OTLP_ENDPOINT",
    )


def load(environ: Mapping[str, str], *, alone: bool = True) -> Settings:
    """Read the settings.

    Args:
        environ: the environment, usually `os.environ`.
        alone: whether a variable that begins like ours and is none is a mistake.

    Raises:
        SettingsError: with everything that is wrong, not only the first.
    """
    settings = variables.load(Settings, environ, alone=alone)
    if settings.require_gpu and (problem := _without_gpu(settings)):
        raise variables.SettingsError([problem])
    return settings


def _without_gpu(settings: Settings) -> str | None:
    """What contradicts EMBER_REQUIRE_GPU, and what to do; None for nothing."""
    if settings.allow_degraded:
        return "EMBER_REQUIRE_GPU and EMBER_ALLOW_DEGRADED contradict each other; unset one."
    if settings.backends == ("cpu",):
        return "EMBER_REQUIRE_GPU is set, and EMBER_BACKENDS is cpu; add tensorrt or cuda."
    return None
