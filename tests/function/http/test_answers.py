"""Clients that take their answers slowly, or never."""

from __future__ import annotations

import http.client
import time

import pytest

from tests.function.live import Live
from tests.function.raw import connection, eventually, head

COUNT = 400
"""So many answers fill all buffers on the way, those of the kernel included."""


@pytest.fixture(scope="module")
def impatient():
    with Live(answer_timeout_s=0.5) as server:
        yield server


def received(client):
    """Everything that still comes."""
    total = 0
    try:
        while data := client.recv(1 << 20):
            total += len(data)
    except ConnectionError:
        pass
    return total


def status(answers):
    """Read the next of several answers on one connection."""
    code = int(answers.readline().split()[1])
    headers = http.client.parse_headers(answers)
    answers.read(int(headers["Content-Length"]))
    return code


def test_a_client_that_never_reads_loses_its_connection(impatient, caplog):
    caplog.set_level("INFO", "ember.connection")
    whole = len(impatient.get("/openapi.json").body) * COUNT
    with connection(impatient) as client:
        client.sendall(head("GET", "/openapi.json") * COUNT)
        eventually(lambda: "a client does not take its answer" in caplog.messages)
        assert received(client) < whole


def test_a_client_that_reads_slowly_gets_all(impatient):
    with connection(impatient) as client:
        client.sendall(head("GET", "/openapi.json") * COUNT)
        with client.makefile("rb") as answers:
            for number in range(COUNT):
                if number % 100 == 0:
                    time.sleep(0.2)
                assert status(answers) == 200


def test_requests_that_come_together_are_answered_in_their_order(impatient):
    paths = ["/healthz", "/openapi.json", "/nowhere", "/readyz"] * 5
    with connection(impatient) as client:
        client.sendall(b"".join(head("GET", path) for path in paths))
        with client.makefile("rb") as answers:
            statuses = [status(answers) for _ in paths]
    assert statuses == [200, 200, 404, 200] * 5
