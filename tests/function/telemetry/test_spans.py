"""Spans end to end: a real replica, OpenTelemetry's SDK, and a collector that reads what comes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_binary_event

from tests.function.background.events import forms
from tests.function.background.events.conftest import cloud as cloud  # noqa: PLC0414 (a fixture)
from tests.function.background.events.conftest import rules as rules  # noqa: PLC0414
from tests.function.background.events.conftest import slow as slow  # noqa: PLC0414
from tests.function.background.jobs.conftest import receiving
from tests.function.live import FORM, SOURCE, TARGET, multipart
from tests.function.raw import eventually
from tests.running import running

from .collector import collecting

STAGES = {"parse", "receive", "decode", "detect", "encode"}
SECRET = "whsec_" + "c2VjcmV0" * 6
FAST = {"OTEL_BSP_SCHEDULE_DELAY": "100"}


@pytest.fixture(scope="module")
def collector():
    with collecting() as found:
        yield found


@pytest.fixture(scope="module")
def server(collector, cloud, rules):
    environ = {
        "EMBER_EVENTS": str(rules),
        "EMBER_URI_NETWORKS": "127.0.0.0/8",
        "K_SERVICE": "swaps",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
    }
    with running(**environ, **FAST) as found:
        yield found


def traced(flags="01"):
    """A new trace: its id, and headers of a request that is part of it."""
    trace = uuid.uuid4().hex
    return trace, {"traceparent": f"00-{trace}-b7ad6b7169203331-{flags}", "tracestate": "shop=1"}


def swap(server, headers, *parts):
    return server.send("POST", "/v1/swap", multipart(*(parts or (SOURCE, TARGET))), FORM | headers)


def refused(*words, **environ):
    """What a server with spans says that does not start with these settings."""
    own = {"EMBER_PORT": "0", "EMBER_TRACES": "http://127.0.0.1:4318"}
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, **own, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 78
    return done.stderr


def test_a_request_is_part_of_the_trace_that_it_names(server, collector):
    trace, headers = traced()
    before = time.time_ns()
    assert swap(server, headers | {"Ember-Request-Id": "order-7"})[0] == 200
    span = collector.of(trace, "POST /v1/swap")
    assert (span.kind, span.parent, span.failed) == ("SERVER", "b7ad6b7169203331", False)
    assert span.span.trace_state == "shop=1"
    assert (span.resource["service.name"], span.facts["ember.request_id"]) == ("swaps", "order-7")
    assert span.facts["http.response.status_code"] == 200
    assert span.facts["http.request.body.size"] > 10_000
    parts = [each for each in collector.spans if each.parent == span.id]
    assert {each.name for each in parts} >= STAGES
    begin, end = span.times
    assert before <= begin < end <= time.time_ns()
    slack = 5_000_000  # a span begins just before its stages' clock, and clocks are rounded
    assert all(begin - slack <= a <= b <= end + slack for a, b in (each.times for each in parts))


def test_without_a_trace_a_request_begins_one_which_the_log_names(server, collector):
    name = uuid.uuid4().hex
    assert swap(server, {"Ember-Request-Id": name})[0] == 200
    (line,) = [each for each in server.events() if each.get("request_id") == name]
    span = collector.of(line["trace_id"], "POST /v1/swap")
    assert span.parent == ""


def test_a_request_whose_trace_is_not_recorded_is_not_recorded(server, collector):
    (trace, headers), (after, recorded) = traced("00"), traced()
    assert swap(server, headers)[0] == 200
    assert swap(server, recorded)[0] == 200
    collector.of(after, "POST /v1/swap")
    assert not [each for each in collector.spans if each.trace == trace]


def test_what_is_wrong_is_named_and_only_the_servers_own_faults_are_failures(server, collector):
    trace, headers = traced()
    assert swap(server, headers, SOURCE)[0] == 422
    span = collector.of(trace, "POST /v1/swap")
    assert span.facts["http.response.status_code"] == 422
    assert (span.facts["error.type"], span.failed) == ("missing_field", False)


def test_probes_and_pings_are_none(server, collector):
    for path, more in (("/healthz", {}), ("/readyz", {}), ("/metrics", {}), ("/", {})):
        trace, headers = traced()
        assert server.send("GET", path, headers=headers | more)[0] == 200
        assert not [each for each in collector.spans if each.trace == trace]
    trace, headers = traced()
    assert swap(server, headers | {"Ember-Ping": "1"})[0] == 200
    after, recorded = traced()
    assert swap(server, recorded)[0] == 200
    collector.of(after, "POST /v1/swap")
    assert not [each for each in collector.spans if each.trace == trace]


def test_an_event_is_part_of_its_trace_and_what_it_leads_to_follows_from_it(
    server, collector, cloud
):
    trace, headers = traced()
    named, body = forms.binary(cloud.upload("in/spans.jpg"))
    status, answer, told = server.send("POST", "/", body, named | headers)
    assert status == 200
    request = collector.of(trace, "POST /")
    event = collector.of(trace, "event")
    assert (event.kind, event.parent, event.failed) == ("CONSUMER", request.id, False)
    assert event.facts["ember.outcome"] == "done"
    assert "spans.jpg" not in str(event.facts)
    inner = collector.of(trace, "target")
    assert inner.parent == event.id
    assert collector.within(inner) >= STAGES - {"parse", "receive"}
    result = from_binary_event(HTTPMessage(dict(answer), told))
    assert result.get_extension("traceparent") == f"00-{trace}-{event.id}-01"


def test_an_event_of_another_trace_than_its_request_is_part_of_its_own(server, collector, cloud):
    (trace, headers), (other, own) = traced(), traced()
    named, body = forms.binary(cloud.upload("in/other.jpg"))
    named |= {"ce-traceparent": own["traceparent"]}
    assert server.send("POST", "/", body, named | headers)[0] == 200
    assert collector.of(other, "event").parent == "b7ad6b7169203331"
    assert collector.of(trace, "POST /").parent == "b7ad6b7169203331"


def test_a_job_and_its_callback_follow_from_the_request_that_made_it(server, collector):
    trace, headers = traced()
    with receiving(204) as receiver:
        callback = (("callback", receiver.url), ("callback_secret", SECRET))
        body = multipart(SOURCE, TARGET, *callback)
        path = f"/v1/jobs/{uuid.uuid4()}"
        assert server.send("PUT", path, body, FORM | headers)[0] == 201
        eventually(lambda: receiver.calls, 60)
    request, job = collector.of(trace, "PUT /v1/jobs/{id}"), collector.of(trace, "job")
    assert (job.kind, job.parent) == ("CONSUMER", request.id)
    assert job.facts["ember.job.targets"] == 1
    assert collector.of(trace, "target").parent == job.id
    call = collector.of(trace, "callback")
    assert call.parent == request.id
    assert receiver.calls[0][0]["traceparent"] == f"00-{trace}-{call.id}-01"


def test_the_last_spans_are_sent_before_the_end(collector):
    trace, headers = traced()
    with running(EMBER_TRACES=collector.url, OTEL_SERVICE_NAME="named") as server:
        assert swap(server, headers)[0] == 200
        server.process.terminate()
        assert server.process.wait(30) == 0
    assert collector.of(trace, "POST /v1/swap").resource["service.name"] == "named"


def test_a_collector_that_is_away_harms_nothing(free_port):
    with running(EMBER_TRACES=f"http://127.0.0.1:{free_port}", **FAST) as server:
        assert swap(server, traced()[1])[0] == 200
        eventually(lambda: any("opentelemetry" in each["logger"] for each in server.events()), 30)
        assert swap(server, traced()[1])[0] == 200
        began = time.monotonic()
        server.process.terminate()
        assert server.process.wait(30) == 0
        assert time.monotonic() - began < 10
        lines = [each for each in server.events() if "opentelemetry" in each["logger"]]
    assert "Traceback" not in json.dumps(lines)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("OTEL_SPAN_EVENT_COUNT_LIMIT", "x", "non-negative integer"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "1", "max_queue_size"),
    ],
)
def test_a_wrong_variable_of_the_sdk_ends_the_start(name, value, told):
    stderr = refused("-m", "function", **{name: value})
    assert "Error: A variable of OpenTelemetry (OTEL_…) is wrong: " in stderr
    assert told in stderr.splitlines()[-1]


def test_where_the_sdk_is_switched_off_traces_are_continued_all_the_same(collector):
    trace, headers = traced()
    with running(EMBER_TRACES=collector.url, OTEL_SDK_DISABLED="true") as server:
        assert swap(server, headers)[0] == 200
        assert swap(server, {})[0] == 200
        lines = [each for each in server.events() if each["message"] == "request"]
    assert [each.get("trace_id") for each in lines[-2:]] == [trace, None]
    assert not [each for each in collector.spans if each.trace == trace]


def test_without_the_library_it_says_what_to_install():
    code = (
        "import sys; sys.modules['opentelemetry'] = None;"
        "from function.process.start import run; sys.exit(run())"
    )
    stderr = refused("-c", code)
    assert "EMBER_TRACES needs opentelemetry: make install EXTRAS=otel" in stderr
