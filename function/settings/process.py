"""Settings of the process itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warmup.settings.readers import choice, moment, seconds, web_url
from warmup.settings.variables import variable

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """The end of the process, and the beginning of its pod."""

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


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Logs and traces."""

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
