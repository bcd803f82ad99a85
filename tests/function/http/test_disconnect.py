"""A client that goes away frees its place."""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack

import pytest
import uvloop

from function.service import work
from tests.function.live import FORM, HOPPER, SOURCE, TARGET, Live, multipart
from tests.function.raw import connection, eventually, head

BODY = multipart(SOURCE, TARGET)
REQUEST = head("POST", "/v1/swap", FORM | {"Content-Length": len(BODY)}) + BODY


@pytest.fixture(scope="module", params=[uvloop.new_event_loop, asyncio.new_event_loop])
def busy(request):
    """A server with a single thread, so that requests wait for each other."""
    with Live(loop_factory=request.param, threads=1) as server:
        yield server


def test_a_client_that_leaves_at_work_frees_its_place(busy):
    with connection(busy) as client:
        client.sendall(REQUEST)
        eventually(lambda: busy.service.in_work == 1)
    eventually(lambda: busy.service.in_work == 0)
    assert busy.form("/v1/faces", ("image", HOPPER)).status == 200


def test_clients_that_leave_in_the_queue_never_begin(busy, caplog, monkeypatch):
    caplog.set_level(logging.INFO, "ember.http")
    begun = []
    decode = work.decode
    monkeypatch.setattr(work, "decode", lambda *a, **k: begun.append(1) or decode(*a, **k))
    with ExitStack() as clients:
        for _ in range(12):
            clients.enter_context(connection(busy)).sendall(REQUEST)
        eventually(lambda: busy.service.in_work == 2)  # twice the threads; the rest is waiting
    eventually(lambda: busy.service.in_work == 0)
    assert len(begun) <= 4  # two photos each of the two that had a place
    assert busy.form("/v1/swap", SOURCE, TARGET).status == 200
    gone = [record for record in caplog.records if getattr(record, "status", 0) == 499]
    assert 2 <= len(gone) <= 12


def test_a_client_that_leaves_while_it_sends_is_no_error(busy, caplog):
    caplog.set_level(logging.INFO)
    headers = FORM | {"Content-Length": len(BODY), "Expect": "100-continue", "X-Request-Id": "half"}
    with connection(busy) as client:
        client.sendall(head("POST", "/v1/swap", headers))
        assert client.recv(100).startswith(b"HTTP/1.1 100")
        client.sendall(BODY[:20_000])
    eventually(lambda: [r for r in caplog.records if getattr(r, "request_id", "") == "half"])
    (record,) = [r for r in caplog.records if getattr(r, "request_id", "") == "half"]
    assert (record.status, record.route) == (499, "/v1/swap")
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_client_that_leaves_the_warm_up_does_not_end_it_for_others():
    with Live(warm=False) as server:
        with connection(server) as client:
            client.sendall(head("POST", "/warmup", {"Content-Length": 0}))
            eventually(lambda: server.replica.phase != "starting")
        answer = server.send("POST", "/warmup")
        assert (answer.status, answer.json["phase"]) == (200, "ready")
        assert [step["phase"] for step in answer.json["steps"]].count("warming") == 1
