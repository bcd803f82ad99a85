"""Every setting of Ember: environment variables, and nothing else.

They are read here once, at start, and passed on. How one is declared says `variables`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warmup import variables
from warmup.settings import WarmupSettings
from warmup.variables import amount, choice, seconds, text, variable, whole

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    threads: int | None = variable(
        None,
        whole(1, 1024),
        "How many threads compute.",
        shown_default="the CPU quota",
    )
    max_pixels: int = variable(
        50_000_000,
        amount(1_000_000),
        "The most pixels (width × height) that an uploaded image may have.",
        shown_default="50M",
    )
    max_body_bytes: int = variable(
        64 * 1024**2,
        amount(1024),
        "The most bytes that the body of a request may have.",
        shown_default="64MiB",
    )
    body_timeout_s: float = variable(
        60.0,
        seconds(1, 3600),
        "How long a client may take to send the body of a request.",
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


def load(environ: Mapping[str, str]) -> Settings:
    """Read the settings.

    Args:
        environ: the environment, usually `os.environ`.

    Raises:
        SettingsError: with everything that is wrong, not only the first.
    """
    values = variables.read(Settings, environ)
    return Settings(**{value.variable.field: value.value for value in values})
