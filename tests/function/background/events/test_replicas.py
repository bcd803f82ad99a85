"""Several replicas and one Redis: kill -9, hand-over, and a broker that delivers more than once."""

from __future__ import annotations

import http.client
import json
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.function.admission.redis_server import RedisServer
from tests.running import running
from tests.soak import tried

from . import forms
from .conftest import pixels
from .test_events import until
from .test_pressure import tiny

TINY = tiny("collins")
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

UPLOADS = tried(140, soak=700)


@pytest.fixture
def redis(needs, free_port, tmp_path):
    options = ("--dir", str(tmp_path), "--appendonly", "yes", "--appendfsync", "always")
    with RedisServer(needs("redis-server"), free_port, *options) as server:
        yield server


@pytest.fixture
def environ(cloud, rules, redis, sink):
    """What every replica is told."""
    return {
        "EMBER_EVENTS": str(rules),
        "EMBER_WATERMARK": "off",  # each event has another
        "EMBER_REDIS_URL": redis.url,
        "EMBER_REDIS_TIMEOUT_S": "2",
        "EMBER_URI_NETWORKS": "127.0.0.0/8",
        "EMBER_EVENT_LEASE_S": "2",
        "EMBER_THREADS": "1",
        "K_SINK": sink.url,
    }


def post(server, request, **more):
    """The status of an answer, its headers and its body; status 0 when there is none."""
    headers, body = request
    try:
        return server.send("POST", "/", body, headers | more)
    except (OSError, http.client.HTTPException):
        return 0, {}, b""


def delivered(servers, request, patience_s=60):
    """Deliver as a broker does: until a replica takes it, where Retry-After says when again."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        status, headers, body = post(random.choice(servers), request)
        if 200 <= status < 300:
            return status
        assert status in {0, 429, 503}, body
        time.sleep(min(0.3, float(headers.get("Retry-After", 0.1))))
    raise AssertionError("nobody has taken the event")


def test_a_replica_that_is_killed_half_way_leaves_one_output(
    environ, cloud, closed, sink, expected
):
    upload = cloud.upload("slow/killed.jpg")
    request = forms.binary(upload)
    with running(**environ) as first:
        delivery = threading.Thread(target=post, args=(first, request), daemon=True)
        delivery.start()
        assert closed.asked.acquire(timeout=30)  # it holds the claim and reads the source
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        delivery.join(30)
    assert cloud.output("slow/killed.jpg") is None
    closed.open.set()
    with running(**environ) as second:
        assert delivered([second], request) == 204
        assert delivered([second], request) == 204
    blob = cloud.output("slow/killed.jpg")
    assert blob.metageneration == 1
    assert np.abs(pixels(blob.download_as_bytes()).astype(int) - expected["jpeg"]).max() <= 1
    assert len(sink.of(f"gs://uploads/slow/killed.jpg#{upload['generation']}")) == 1


def test_an_accepted_event_is_done_by_another_replica_though_nobody_delivers_it_again(
    environ, cloud, closed, sink
):
    upload = cloud.upload("slow/accepted.jpg")
    environ |= {"EMBER_EVENT_ACK_S": "4"}  # the store is asked within it
    with running(**environ) as first, running(**environ) as second:
        status, headers, body = post(first, forms.binary(upload), traceparent=TRACEPARENT)
        assert (status, body, headers["Ember-Event"]) == (202, b"", "accepted")
        assert post(second, forms.binary(upload))[0] == 202
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        closed.open.set()
        until(lambda: cloud.output("slow/accepted.jpg"))
        uri = f"gs://uploads/slow/accepted.jpg#{upload['generation']}"
        (event,) = until(lambda: sink.of(uri))
        assert event.get_extension("traceparent")[3:35] == TRACEPARENT[3:35]
        status, headers, _ = until(
            lambda: (a := post(second, forms.binary(upload)))[0] == 204 and a
        )
        assert headers["Ember-Event"] == "duplicate"
        (line,) = [each for each in second.events() if each["message"] == "taking over an event"]
        assert line
        assert len(sink.of(uri)) == 1


def test_an_accepted_event_is_handed_over_when_its_replica_is_told_to_stop(environ, cloud, closed):
    cloud.upload("slow/stopped.jpg")
    upload = cloud.upload("slow/stopped.jpg")
    environ |= {"EMBER_EVENT_ACK_S": "4", "EMBER_EVENT_LEASE_S": "60"}
    with running(**environ) as second:
        with running(**environ, EMBER_DRAIN_TIMEOUT_S="0.5") as first:
            assert post(first, forms.binary(upload))[0] == 202
            first.process.terminate()
            first.process.wait(30)
        closed.open.set()
        until(lambda: cloud.output("slow/stopped.jpg"))  # long before the lease would have ended
        assert second.process.poll() is None


def test_the_log_names_the_trace(environ, cloud):
    upload = cloud.upload("in/trace.jpg")
    with running(**environ) as server:
        post(server, forms.binary(upload), traceparent=TRACEPARENT)
        post(server, forms.binary(upload))
        lines = [each for each in server.events() if each["message"] == "event"]
    assert [line.get("trace_id") for line in lines] == [TRACEPARENT[3:35], None]
    assert [line["outcome"] for line in lines] == ["done", "duplicate"]
    assert not any("trace.jpg" in str(line) for line in lines)


def test_while_redis_is_away_events_have_to_come_again(environ, cloud, redis):
    upload = cloud.upload("in/away.jpg")
    with running(**environ) as server:
        redis.kill()
        status, headers, body = post(server, forms.binary(upload))
        assert status == 503
        assert json.loads(body)["code"] == "events_unavailable"
        assert int(headers["Retry-After"]) >= 1
        redis.start()
        assert delivered([server], forms.binary(upload)) == 204


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_duplicates_in_any_order_a_killed_replica_and_a_new_redis_give_one_output_each(
    environ, cloud, sink, redis
):
    uploads = [cloud.upload(f"in/many-{n}.jpg", TINY) for n in range(UPLOADS)]
    deliveries = [*uploads, *random.Random(1).sample(uploads, UPLOADS * 3 // 7)]
    random.Random(2).shuffle(deliveries)
    kinds = list(forms.ALL.values())
    requests = [kinds[n % len(kinds)](each) for n, each in enumerate(deliveries)]
    with running(**environ) as first, running(**environ) as second:
        servers = [first, second]
        with ThreadPoolExecutor(8) as brokers:
            done = [brokers.submit(delivered, servers, each, 240) for each in requests]
            until(lambda: sum(each.done() for each in done) >= UPLOADS * 3 // 7, 240)
            first.process.send_signal(signal.SIGKILL)
            until(lambda: sum(each.done() for each in done) >= UPLOADS * 6 // 7, 240)
            redis.kill()
            redis.start()
            assert {each.result(240) for each in done} <= {202, 204}
        for upload in uploads:
            name = upload["name"].replace(".jpg", ".webp")
            assert until(lambda name=name: cloud.output(name)).metageneration == 1
            told = sink.of(f"gs://uploads/{upload['name']}#{upload['generation']}")
            assert len({event.get_id() for event in told}) == 1
            written = {event.get_data()["output"]["generation"] for event in told}
            assert written == {str(cloud.output(name).generation)}
