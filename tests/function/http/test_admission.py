"""Too many requests, or too many bytes of them, are refused, and only as long as they are."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from select import select
from types import SimpleNamespace

import pytest

from function import work
from function.http.admission import Admission
from function.problems import Problem
from function.trace import Trace

from .live import FORM, HOPPER, Live, multipart
from .raw import connection, eventually, head, read_answer

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


def faces(server):
    return server.form("/v1/faces", ("image", HOPPER))


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


def test_who_would_wait_behind_too_many_is_refused(single):
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


def test_who_comes_at_the_same_moment_is_refused_with_its_body(single):
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


def test_those_who_leave_the_queue_make_room_in_it(single):
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


def test_retry_after_follows_from_the_queue_and_from_what_recent_turns_took():
    admission = Admission(SimpleNamespace(waiting=7, places=2), queue_limit=8, bodies_bytes=0)
    for _ in range(3):
        trace = Trace()
        with admission.turn(trace):
            with trace.span("queue"):
                time.sleep(0.05)
            time.sleep(0.6)
    with pytest.raises(Problem) as raised, admission.body() as take:
        take(1)
    # eight turns, two at once, of 0.6 s each
    assert int(raised.value.headers["Retry-After"]) >= 3
