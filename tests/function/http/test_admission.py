"""Too many requests, or too many bytes of them, are refused, and only as long as they are."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from select import select

import pytest

from function.request_context import Lane
from function.service import work
from tests.function.live import FORM, HOPPER, Live, multipart
from tests.function.raw import connection, eventually, head, read_answer

GOOD = multipart(("image", HOPPER))
LENGTH = {"Content-Length": len(GOOD)}
ROOM = 3 * len(GOOD)
EXPECT = FORM | {"Expect": "100-continue"}
CHUNKED = FORM | {"Transfer-Encoding": "chunked"}


@pytest.fixture(scope="module")
def narrow():
    """A server with room for one large body, or three small ones."""
    with Live(max_body_bytes=ROOM, max_bodies_bytes=ROOM, body_timeout_s=2.0) as server:
        yield server


@pytest.fixture
def single(monkeypatch):
    """A server of one thread that does not decode before it is let go, and what lets it go."""
    go, decode = threading.Event(), work.decode
    with Live(threads=1, queue_limit=3) as server:
        monkeypatch.setattr(work, "decode", lambda *a, **k: go.wait(60) and decode(*a, **k))
        yield server, go
        go.set()


def faces(server, lane="standard"):
    return server.form("/v1/faces", ("image", HOPPER), Ember_Lane=lane)


def announced(client, length):
    client.sendall(head("POST", "/v1/faces", EXPECT | {"Content-Length": length}))
    assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_an_announced_body_takes_its_room_before_it_comes(narrow):
    with connection(narrow) as client:
        announced(client, ROOM - len(GOOD))
        assert faces(narrow).status == 200
        with connection(narrow) as other:
            announced(other, len(GOOD))
            answer = faces(narrow)
    members = answer.problem("overloaded", 503)
    assert (members["limit"], members["setting"]) == (ROOM, "EMBER_MAX_BODIES_BYTES")
    assert int(answer.headers["Retry-After"]) >= 1
    eventually(lambda: faces(narrow).status == 200)


def test_a_chunked_body_takes_room_as_it_comes(narrow):
    with connection(narrow) as client, connection(narrow) as other:
        announced(client, ROOM - 1000)
        other.sendall(head("POST", "/v1/faces", CHUNKED) + b"3e8\r\n" + bytes(1000) + b"\r\n")
        other.settimeout(0.2)
        with pytest.raises(TimeoutError):
            other.recv(1)
        other.settimeout(20)
        other.sendall(b"1\r\nx\r\n")
        read_answer(other).problem("overloaded", 503)


@pytest.mark.parametrize("body", [GOOD, GOOD[:-4], GOOD[:1000], None])
def test_room_comes_back_however_a_request_ends(narrow, body):
    """Well, with a problem, by a timeout, by a client that goes away; many times over."""
    for _ in range(1 if body == GOOD[:1000] else 5):
        with connection(narrow) as client:
            announced(client, ROOM if body is None else len(GOOD))
            if body:
                client.sendall(body if body != GOOD[:-4] else body + b"nope")
                assert read_answer(client).status in {200, 400, 408}
        eventually(lambda: narrow.send("POST", "/v1/faces", bytes(ROOM), FORM).status == 400)


def test_one_body_always_has_room():
    with Live(max_body_bytes=ROOM, max_bodies_bytes=1024) as server:
        assert faces(server).status == 200


def test_a_request_that_would_wait_behind_too_many_is_refused(single):
    server, go = single
    with ThreadPoolExecutor(8) as clients:
        waiting = [clients.submit(faces, server) for _ in range(2 + 3)]
        eventually(lambda: server.service.waiting == 3)
        answer = faces(server)
        members = answer.problem("overloaded", 503)
        assert (members["limit"], members["setting"]) == (3, "EMBER_QUEUE_LIMIT")
        assert int(answer.headers["Retry-After"]) >= 1
        with connection(server) as client:  # it need not even send its photo
            client.sendall(head("POST", "/v1/faces", EXPECT | LENGTH))
            read_answer(client).problem("overloaded", 503)
        go.set()
        assert [each.result().status for each in waiting] == [200] * 5
    assert server.service.waiting == 0
    assert faces(server).status == 200


def test_a_request_that_finds_the_queue_full_after_its_body_is_refused(single):
    server, go = single
    with ExitStack() as stack:
        clients = [stack.enter_context(connection(server)) for _ in range(8)]
        for client in clients:
            announced(client, len(GOOD))
        for client in clients:
            client.sendall(GOOD)
        eventually(lambda: len(select(clients, [], [], 0)[0]) == 3)
        go.set()
        statuses = sorted(read_answer(client).status for client in clients)
    assert statuses == [200] * 5 + [503] * 3


def test_requests_that_leave_the_queue_make_room_in_it(single):
    server, go = single
    for _ in range(3):
        with ExitStack() as clients:
            for _ in range(5):
                client = clients.enter_context(connection(server))
                client.sendall(head("POST", "/v1/faces", FORM | LENGTH) + GOOD)
            eventually(lambda: server.service.waiting == 3)
        eventually(lambda: server.service.waiting == 0)
    go.set()
    assert faces(server).status == 200


def test_a_full_lane_keeps_nobody_out_of_another(single):
    server, go = single
    with ThreadPoolExecutor(8) as clients:
        waiting = [clients.submit(faces, server, "bulk") for _ in range(2 + 3)]
        eventually(lambda: server.service.waiting == 3)
        assert faces(server, "bulk").problem("overloaded", 503)["lane"] == "bulk"
        waiting.append(clients.submit(faces, server, "interactive"))
        eventually(lambda: server.service.in_work == 3)  # there is a place for the urgent
        scrape = server.get("/metrics").body.decode()
        assert 'ember_in_flight{lane="bulk"} 5.0' in scrape
        assert 'ember_in_flight{lane="interactive"} 1.0' in scrape
        go.set()
        assert [each.result().status for each in waiting] == [200] * 6


def test_what_cannot_meet_its_deadline_is_refused_before_it_waits(single):
    server, go = single
    go.set()
    assert faces(server).status == 200  # how long a turn takes is known from now on
    go.clear()
    with ThreadPoolExecutor(8) as clients:
        waiting = [clients.submit(faces, server) for _ in range(2 + 2)]
        eventually(lambda: server.service.waiting == 2)
        hasty = server.form("/v1/faces", ("image", HOPPER), Request_Timeout="0.001")
        assert "deadline" in hasty.problem("overloaded", 503)["detail"]
        assert int(hasty.headers["Retry-After"]) >= 1
        go.set()
        assert [each.result().status for each in waiting] == [200] * 4


def test_a_wait_that_becomes_vain_is_told_at_once(single):
    """The deadline is an hour away; what is told of turns by then makes it too late."""
    server, go = single
    load = server.server.admission.load
    with ThreadPoolExecutor(8) as clients:
        held = [clients.submit(faces, server) for _ in range(2)]
        eventually(lambda: server.service.in_work == 2)
        vain = clients.submit(faces, server)
        eventually(lambda: server.service.waiting == 1)
        for _ in range(8):
            load.learn(3600.0)
        server.loop.call_soon_threadsafe(load.renew)
        answer = vain.result()
        assert "deadline" in answer.problem("overloaded", 503)["detail"]
        assert int(answer.headers["Retry-After"]) >= 1
        assert server.service.waiting == 0
        go.set()
        assert [each.result().status for each in held] == [200] * 2


def test_a_request_ends_at_its_deadline_and_leaves_its_place(single):
    server, go = single
    late = server.form("/v1/faces", ("image", HOPPER), Request_Timeout="0.3")
    assert late.problem("deadline_exceeded", 504)["limit"] == 0.3
    eventually(lambda: server.service.in_work == 0)
    go.set()
    assert faces(server).status == 200


def test_a_request_that_waits_at_its_deadline_never_begins(single):
    server, go = single
    with ThreadPoolExecutor(8) as clients:
        held = [clients.submit(faces, server) for _ in range(2)]
        eventually(lambda: server.service.in_work == 2)
        parts = ("source", HOPPER), ("target", HOPPER)
        late = server.form("/v1/swap", *parts, Request_Timeout="0.2")
        late.problem("deadline_exceeded", 504)
        assert "queue" in late.headers["Server-Timing"]
        go.set()
        assert [each.result().status for each in held] == [200] * 2
    stages = [line for line in server.get("/metrics").body.decode().splitlines() if "stage" in line]
    assert any('ember_stage_seconds_count{stage="decode"} 2.0' in line for line in stages)


def test_no_request_may_take_longer_than_the_server_lets_it():
    with Live(request_timeout_s=0.3) as server, connection(server) as client:
        patient = {"Content-Length": 1000, "Request-Timeout": "60"}
        client.sendall(head("POST", "/v1/faces", FORM | patient))
        members = read_answer(client).problem("deadline_exceeded", 504)
        assert (members["limit"], members["setting"]) == (0.3, "EMBER_REQUEST_TIMEOUT_S")


@pytest.mark.parametrize("value", ["0", "0.0", "-1", "soon", "", "1e3", "1234567", "inf", "1,5"])
def test_a_timeout_that_is_no_time_is_refused(live, value):
    answer = live.form("/v1/faces", ("image", HOPPER), Request_Timeout=value)
    assert "Request-Timeout" in answer.problem("bad_request", 400)["detail"]


def test_a_lane_that_does_not_exist_is_refused(live):
    answer = live.form("/v1/faces", ("image", HOPPER), Ember_Lane="express")
    assert answer.problem("bad_request", 400)["allowed"] == list(Lane)
