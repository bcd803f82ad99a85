"""A collector of spans: a real server, which reads what it gets by OpenTelemetry's own protocol."""

from __future__ import annotations

import gzip
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.function.background.events.conftest import serving
from tests.function.raw import eventually


@dataclass(frozen=True)
class Seen:
    """A span that has come."""

    span: Span
    resource: dict[str, str]

    @property
    def name(self):
        return self.span.name

    @property
    def kind(self):
        return Span.SpanKind.Name(self.span.kind).removeprefix("SPAN_KIND_")

    @property
    def trace(self):
        return self.span.trace_id.hex()

    @property
    def id(self):
        return self.span.span_id.hex()

    @property
    def parent(self):
        return self.span.parent_span_id.hex()

    @property
    def facts(self):
        return _plain(self.span.attributes)

    @property
    def failed(self):
        return self.span.status.code == Status.STATUS_CODE_ERROR

    @property
    def times(self):
        """When it began and ended, in nanoseconds of Unix time."""
        return self.span.start_time_unix_nano, self.span.end_time_unix_nano


def _plain(attributes):
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


class Collector:
    """What has come, in the order in which it came."""

    def __init__(self):
        self.spans = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                assert self.path == "/v1/traces"
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Content-Encoding"] == "gzip":
                    body = gzip.decompress(body)
                for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                    resource = _plain(group.resource.attributes)
                    for scope in group.scope_spans:
                        outer.spans += [Seen(span, resource) for span in scope.spans]
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.handler = Handler

    def of(self, trace, name):
        """The one span of that name in a trace, once it has come."""
        eventually(
            lambda: any(each.name == name and each.trace == trace for each in self.spans), 30
        )
        (found,) = [each for each in self.spans if each.name == name and each.trace == trace]  # X
        return found

    def within(self, seen):
        """The names of the parts of a span, which all came with it or before."""
        return {each.name for each in self.spans if each.parent == seen.id}


@contextmanager
def collecting():
    collector = Collector()
    with serving(collector.handler) as url:
        collector.url = url
        yield collector
