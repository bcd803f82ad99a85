"""SIGTERM: under load no request is lost or refused, and before readiness nothing is waited for."""

from __future__ import annotations

import http.client
import signal
import threading
import time
from dataclasses import dataclass, field

import pytest

from tests.function.http.test_probes import broken_manifest
from tests.function.live import COLLINS, FORM, HOPPER, multipart
from tests.function.raw import connection, eventually, head, read_answer
from tests.running import running

from .test_life import small
from .test_server import ask, phases

BODY = multipart(("image", small(COLLINS)))


@dataclass
class Client(threading.Thread):
    """Posts on one connection that it keeps while the server does, until it is told to stop."""

    port: int
    stop: threading.Event
    statuses: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    closed: int = 0

    def __post_init__(self):
        super().__init__()

    __hash__ = threading.Thread.__hash__

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while not self.stop.is_set():
            try:
                connection.request("POST", "/v1/faces", BODY, FORM)
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(repr(error))
                return
            self.statuses.append(response.status)
            self.closed += response.will_close  # it then opens a new one by itself
        connection.close()


def balance(port, stop):
    """Do as a load balancer: ask every 100 ms, and stop sending when it is not ready any more."""
    while True:
        probe = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        probe.request("GET", "/readyz")
        if probe.getresponse().status != 200:
            break
        probe.close()
        time.sleep(0.1)
    probe.close()
    time.sleep(0.5)  # word takes a while to spread
    stop.set()


def test_under_load_no_request_is_lost_or_refused():
    with running(EMBER_DRAIN_GRACE_S="3") as server:
        stop = threading.Event()
        clients = [Client(server.port, stop) for _ in range(12)]
        balancer = threading.Thread(target=balance, args=(server.port, stop))
        for thread in (*clients, balancer):
            thread.start()
        eventually(lambda: all(len(client.statuses) > 2 for client in clients), 60)
        before = sum(len(client.statuses) for client in clients)
        server.process.send_signal(signal.SIGTERM)
        for thread in (*clients, balancer):
            thread.join(60)
        assert [client.errors for client in clients] == [[]] * 12
        statuses = [status for client in clients for status in client.statuses]
        assert set(statuses) == {200}
        assert len(statuses) > before
        # each connection was told to close, so that the clients went elsewhere by themselves
        assert all(client.closed for client in clients)
        assert server.process.wait(60) == 0
        served = [e for e in server.events() if e.get("route") == "/v1/faces"]
        assert [event["status"] for event in served] == [200] * len(statuses)


def test_a_connection_that_was_idle_is_served_during_the_grace():
    with running(EMBER_DRAIN_GRACE_S="5") as server, connection(server) as client:
        request = head("POST", "/v1/faces", FORM | {"Content-Length": len(BODY)}) + BODY
        client.sendall(request)
        assert "Connection" not in read_answer(client).headers
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: ask(server).status == 503)
        client.sendall(request)
        answer = read_answer(client)
        assert (answer.status, answer.headers["Connection"]) == (200, "close")


def ended(server):
    """The exit code and how long the end took."""
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    return server.process.wait(120), time.monotonic() - began


@pytest.mark.parametrize("phase", ["loading", "warming"])
def test_a_replica_that_is_not_ready_yet_ends_without_grace_and_without_waiting(phase):
    """Warming would go on for minutes, the grace for five."""
    slow = {"EMBER_WARMUP_REQUESTS": "1000", "EMBER_DRAIN_GRACE_S": "300"}
    with running(ready=False, **slow) as server:
        eventually(lambda: phase in phases(server), 60)
        code, seconds = ended(server)
        assert code == 0
        assert seconds < 60
        assert phases(server)[-1] == "draining"


def test_a_replica_that_waits_for_its_next_try_ends_without_grace(tmp_path):
    settings = {"EMBER_MANIFEST": str(broken_manifest(tmp_path)), "EMBER_DRAIN_GRACE_S": "300"}
    with running(ready=False, **settings) as server:
        eventually(lambda: ask(server).json["last_error"])
        code, seconds = ended(server)
        assert code == 0
        assert seconds < 60


def test_a_request_that_waits_for_the_warm_up_is_told_that_it_will_not_come():
    slow = {"EMBER_WARMUP_REQUESTS": "1000", "EMBER_DRAIN_TIMEOUT_S": "300"}
    with running(ready=False, **slow) as server, connection(server, 60) as client:
        eventually(lambda: "warming" in phases(server), 60)
        client.sendall(head("POST", "/warmup", {"Content-Length": 0}))
        time.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        answer = read_answer(client)
        assert (answer.status, answer.json["phase"]) == (503, "draining")
        assert server.process.wait(60) == 0


def test_requests_that_take_too_long_do_not_hold_the_process():
    """Twelve swaps of a thread that has time for few of them."""
    settings = {"EMBER_THREADS": "1", "EMBER_DRAIN_TIMEOUT_S": "0.3"}
    with running(**settings) as server:
        body = multipart(*[("source", HOPPER)] * 8, ("target", COLLINS))
        request = head("POST", "/v1/swap", FORM | {"Content-Length": len(body)}) + body
        clients = []
        for _ in range(12):
            stack = connection(server, 60)
            clients.append((stack, stack.__enter__()))
            clients[-1][1].sendall(request)
        eventually(lambda: b"ember_in_work 2.0" in ask(server, "/metrics").body)
        assert ended(server)[0] == 0
        for stack, _ in clients:
            stack.__exit__(None, None, None)
        lost = [event for event in server.events() if event.get("status") == 499]
        assert lost
