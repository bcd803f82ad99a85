"""Settings of who may call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warmup.settings.readers import choice, file, origins, seconds, secure_url, switch, text, whole
from warmup.settings.readers import redis_url as redis_address
from warmup.settings.variables import variable

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class AddressSettings:
    """Where the server listens, and which pages of browsers may call it."""

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


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Who callers are, and what they may have."""

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


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """What replicas share, and what holds while they cannot ask for it."""

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
