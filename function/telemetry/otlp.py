"""Spans by way of OpenTelemetry's SDK, to a collector. Heavy to import.

The SDK reads its own variables (`OTEL_…`): of the service's name, sampling, headers, certificates
and batches.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from opentelemetry import trace as api
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from function import __version__
from function.telemetry.trace_context import TraceContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.telemetry.spans import SpanKind
    from function.telemetry.timings import Timings

_PATIENCE_S = 3.0
"""How long the end of the process waits for a collector to take the last spans."""


class Otlp:
    """Sends spans as OTLP over HTTP, in batches, from a thread of its own.

    A collector that is away costs spans and a line in the log, never a request.

    Args:
        endpoint: the address of a collector, without `/v1/traces`.
    """

    def __init__(self, endpoint: str) -> None:
        logging.getLogger("opentelemetry.trace.span").setLevel(logging.ERROR)  # it quotes clients
        exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")
        self._provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("ember", __version__)

    def begin(self, name: str, kind: SpanKind, parent: TraceContext | None) -> OtlpSpan:
        """Begin a span."""
        above = api.set_span_in_context(_remote(parent)) if parent else Context()
        return OtlpSpan(self._tracer, self._tracer.start_span(name, above, kind=api.SpanKind[kind]))

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        sending = threading.Thread(target=self._provider.shutdown, daemon=True)
        sending.start()
        sending.join(_PATIENCE_S)


class OtlpSpan:
    """A span that the SDK records."""

    __slots__ = ("_span", "_tracer", "context")

    def __init__(self, tracer: api.Tracer, span: api.Span) -> None:
        self._tracer, self._span = tracer, span
        found = span.get_span_context()
        self.context = _context(found) if found.is_valid else None  # the SDK can be switched off

    def end(self, facts: Mapping[str, Any], stages: Timings | None, *, failed: bool) -> None:
        """Write down what became of it; the stages are spans within it."""
        if self._span.is_recording():
            self._span.set_attributes(facts)
            if failed:
                self._span.set_status(api.StatusCode.ERROR)
            if stages:
                self._record(stages)
        self._span.end()

    def _record(self, stages: Timings) -> None:
        within = api.set_span_in_context(self._span)
        began_ns = time.time_ns() - time.perf_counter_ns() + int(stages.began * 1e9)
        for each in stages.spans:
            start_ns = began_ns + int(each.start_ms * 1e6)
            part = self._tracer.start_span(each.stage, within, start_time=start_ns)
            part.end(start_ns + int(each.ms * 1e6))


def _context(context: api.SpanContext) -> TraceContext:
    return TraceContext(
        api.format_trace_id(context.trace_id),
        api.format_span_id(context.span_id),
        f"{context.trace_flags:02x}",
        context.trace_state.to_header(),
    )


def _remote(parent: TraceContext) -> api.Span:
    return api.NonRecordingSpan(
        api.SpanContext(
            int(parent.id, 16),
            int(parent.span, 16),
            is_remote=True,
            trace_flags=api.TraceFlags(int(parent.flags, 16)),
            trace_state=api.TraceState.from_header([parent.state]),
        )
    )


def _resource() -> Resource:
    """What all spans are about: the SDK's variables count, else the Knative Service's name."""
    found = Resource.create()
    own = {SERVICE_VERSION: __version__}
    if str(found.attributes[SERVICE_NAME]).startswith("unknown_service"):
        own[SERVICE_NAME] = os.environ.get("K_SERVICE", "ember")
    return found.merge(Resource(own))
