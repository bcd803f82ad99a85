"""What every answer has, and what is answered to bytes that are not HTTP."""

from __future__ import annotations

import logging

import pytest

from tests.function.live import FORM, HOPPER, SOURCE, TARGET, multipart
from tests.function.raw import closed, connection, head, read_answer

ANSWERS = [
    ("GET", "/healthz", 200),
    ("GET", "/readyz", 200),
    ("GET", "/metrics", 200),
    ("GET", "/openapi.json", 200),
    ("GET", "/samples/hopper.jpg", 200),
    ("GET", "/nowhere", 404),
    ("GET", "/v1/swap", 405),
    ("PUT", "/healthz", 405),
    ("OPTIONS", "/v1/swap", 204),
    ("POST", "/v1/swap", 415),
]


@pytest.mark.parametrize(("method", "path", "status"), ANSWERS)
def test_every_answer_has_the_same_headers(live, method, path, status):
    answer = live.send(method, path)
    assert answer.status == status
    assert "total;dur=" in answer.headers["Server-Timing"]
    assert len(answer.headers["Ember-Request-Id"]) == 32
    assert answer.headers["Server"] == "ember"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] in {"no-store", "no-cache"}


def test_a_swap_says_where_its_time_went(live):
    timing = live.form("/v1/swap", SOURCE, TARGET).headers["Server-Timing"]
    stages = dict(each.split(";dur=") for each in timing.split(", "))
    expected = ["receive", "parse", "queue", "decode", "detect", "landmarks", "identity", "swap"]
    assert set(expected) <= set(stages)
    assert list(stages)[-1] == "total"
    assert all(float(ms) >= 0 for ms in stages.values())
    parts = {name: float(ms) for name, ms in stages.items() if name.startswith("swap.")}
    assert parts.keys() == {"swap.warp", "swap.light", "swap.finish", "swap.blend"}
    assert sum(parts.values()) <= float(stages["swap"]) + 0.1 * len(stages)  # each is rounded
    metrics = live.send("GET", "/metrics").body.decode()
    assert 'stage="swap"' in metrics
    assert 'stage="swap.' not in metrics


@pytest.mark.parametrize("name", ["Ember-Request-Id", "X-Request-Id"])
def test_a_sane_request_id_is_kept(live, name):
    answer = live.send("GET", "/nowhere", headers={name: "trace-7/a:b"})
    assert answer.headers["Ember-Request-Id"] == "trace-7/a:b"
    assert answer.json["request_id"] == "trace-7/a:b"


@pytest.mark.parametrize("value", ["", "two words", "x" * 129, "ü", '{"a":1}', "a,b"])
def test_any_other_request_id_is_replaced(live, value):
    answer = live.send("GET", "/healthz", headers={"X-Request-Id": value.encode()})
    assert len(answer.headers["Ember-Request-Id"]) == 32


@pytest.mark.parametrize(
    ("path", "allow"),
    [
        ("/v1/swap", "OPTIONS, POST"),
        ("/healthz", "GET, HEAD, OPTIONS"),
        ("/warmup", "GET, HEAD, OPTIONS, POST"),
        ("/", "GET, HEAD, OPTIONS, POST"),
    ],
)
def test_options_and_wrong_methods_say_what_is_allowed(live, path, allow):
    options = live.send("OPTIONS", path)
    assert (options.status, options.body, options.headers["Allow"]) == (204, b"", allow)
    wrong = live.send("DELETE", path)
    wrong.problem("method_not_allowed", 405)
    assert wrong.headers["Allow"] == allow


def test_head_is_get_without_the_body(live):
    for path in ("/healthz", "/openapi.json", "/samples/hopper.jpg"):
        get, without = live.get(path), live.send("HEAD", path)
        assert (without.status, without.body) == (200, b"")
        assert without.headers["Content-Length"] == str(len(get.body))


def test_head_of_a_call_is_not_allowed_and_keeps_the_connection(live):
    with connection(live) as client:
        client.sendall(head("HEAD", "/v1/swap"))
        assert read_answer(client, "HEAD").status == 405
        client.sendall(head("GET", "/healthz"))
        assert read_answer(client).status == 200


@pytest.mark.parametrize(
    "garbage",
    [
        b"GARBAGE\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9.9\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"G<script>T / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\n: empty\r\n\r\n",
        b"POST /v1/swap HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/swap HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/swap HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/swap HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=range(13),
)
def test_bytes_that_are_not_http_are_a_bad_request(live, garbage):
    with connection(live) as client:
        client.sendall(garbage)
        answer = read_answer(client)
        members = answer.problem("bad_request", 400)
        assert members["detail"] == "The request is not well-formed HTTP."
        assert answer.headers["Server"] == "ember"
        assert "total;dur=" in answer.headers["Server-Timing"]
        assert closed(client)


@pytest.mark.parametrize(
    ("sent", "code", "status", "limit"),
    [
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", "url_too_long", 414, 8190),
        (b"GET /?" + b"x" * 8190 + b" HTTP/1.1\r\n\r\n", "url_too_long", 414, 8190),
        (b"GET /" + b"x" * 100_000, "url_too_long", 414, 8190),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * 20_000 + b"\r\n\r\n", "head_too_large", 431, 8192),
        (b"GET / HTTP/1.1\r\nA: /" + b"x" * 8192 + b"\r\n\r\n", "head_too_large", 431, 8192),
        (b"GET / HTTP/1.1\r\n" + b"A" * 9000 + b": x\r\n\r\n", "head_too_large", 431, 8192),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 129 + b"\r\n", "head_too_large", 431, 128),
    ],
    ids=range(7),
)
def test_a_head_that_is_too_long_is_refused_with_its_limit(live, sent, code, status, limit):
    with connection(live) as client:
        client.sendall(sent)
        answer = read_answer(client)
        members = answer.problem(code, status)
        assert members["limit"] == limit
        assert str(limit) in members["detail"]
        assert closed(client)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /healthz?" + b"x" * (8190 - 9) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 8191 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 127 + b"\r\n",
    ],
    ids=range(3),
)
def test_a_head_as_long_as_it_may_be_is_answered(live, sent):
    with connection(live) as client:
        client.sendall(sent)
        assert read_answer(client).status == 200


@pytest.mark.parametrize(
    "target", ["*", "http://elsewhere/healthz", "//", "/%", "/%ff", "/..", "/\xff".encode()]
)
def test_odd_targets_are_answered(live, target):
    target = target if isinstance(target, bytes) else target.encode()
    with connection(live) as client:
        client.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(client).status < 500


def test_an_upgrade_is_ignored(live):
    with connection(live) as client:
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
        client.sendall(head("GET", "/healthz", upgrade))
        assert read_answer(client).status == 200


def test_pipelined_requests_are_answered_in_order(live):
    paths = {"/healthz": b"200 OK", "/nowhere": b"404 Not Found", "/readyz": b"200 OK"}
    requests = [head("GET", path) for path in paths]
    requests[-1] = head("GET", "/readyz", {"Connection": "close"})
    with connection(live) as client:
        client.sendall(b"".join(requests))
        received = b"".join(iter(lambda: client.recv(65536), b""))
    lines = [line for line in received.split(b"\r\n") if b"HTTP/1.1 " in line]
    assert [line.partition(b"HTTP/1.1 ")[2] for line in lines] == list(paths.values())


def test_http_1_0_is_answered_and_closed(live):
    with connection(live) as client:
        client.sendall(head("GET", "/healthz", version="HTTP/1.0"))
        assert read_answer(client).status == 200
        assert closed(client)


def test_one_log_line_for_each_request_without_anything_personal(live, caplog):
    caplog.set_level(logging.INFO, "ember.http")
    body = multipart(("image", HOPPER))
    answer = live.send("POST", "/v1/faces", body, FORM | {"X-Request-Id": "mine"})
    (record,) = [each for each in caplog.records if each.name == "ember.http"]
    assert record.message == "request"
    assert (record.method, record.route, record.status) == ("POST", "/v1/faces", 200)
    assert (record.bytes_in, record.bytes_out) == (len(body), len(answer.body))
    assert record.request_id == "mine"
    assert record.ms > 0
    assert "photo.jpg" not in str(record.__dict__)
    assert "127.0.0.1" not in str(record.__dict__)


def test_a_refused_request_is_logged_with_its_code(live, caplog):
    caplog.set_level(logging.INFO, "ember.http")
    live.get("/some/where?with=secrets")
    (record,) = [each for each in caplog.records if each.name == "ember.http"]
    assert (record.route, record.status, record.code) == ("unmatched", 404, "not_found")
    assert "secrets" not in str(record.__dict__)
