"""The process: its port, its signals, its exit codes."""

from __future__ import annotations

import signal
import socket
import threading
import time

import pytest

from function.process.server import serve
from tests.function.http.test_probes import broken_manifest
from tests.function.live import COLLINS, DEFAULTS, FORM, SOURCE, TARGET, multipart
from tests.function.raw import connection, eventually, head, read_answer
from tests.running import running
from warmup.settings.variables import replace as changed
from warmup.timeline import Timeline

BODY = multipart(SOURCE, TARGET)
SWAP = head("POST", "/v1/swap", FORM | {"Content-Length": len(BODY)}) + BODY


def ask(server, path="/readyz"):
    with connection(server) as client:
        client.sendall(head("GET", path))
        return read_answer(client)


def phases(server):
    return [event["phase"] for event in server.events() if event["message"] == "phase"]


def test_the_port_is_bound_before_the_models_are_loaded():
    with running(ready=False) as server:
        assert ask(server, "/healthz").status == 200
        eventually(lambda: ask(server).status == 200)
        messages = [event.get("phase", event["message"]) for event in server.events()]
        assert messages.index("listening") < messages.index("loading")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_with_0(number):
    with running() as server:
        server.process.send_signal(number)
        assert server.process.wait(30) == 0
        assert phases(server)[-1] == "draining"


def test_a_signal_during_the_warm_up_ends_the_process_with_0():
    with running(ready=False) as server:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0


def test_a_replica_that_stops_is_unready_at_once_but_serves_for_the_grace():
    with running(EMBER_DRAIN_GRACE_S="3") as server:
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: ask(server).status == 503)
        assert ask(server).json["phase"] == "draining"
        with connection(server) as client:
            client.sendall(SWAP)
            answer = read_answer(client)
        assert (answer.status, answer.headers["Connection"]) == (200, "close")
        assert server.process.wait(30) == 0


def test_requests_in_work_end_before_the_process_does():
    with running(EMBER_THREADS="1") as server:
        answers = []

        def swap():
            with connection(server, timeout=60) as client:
                client.sendall(SWAP)
                answers.append(read_answer(client))

        threads = [threading.Thread(target=swap) for _ in range(5)]
        for thread in threads:
            thread.start()
        eventually(lambda: b"ember_in_work 2.0" in ask(server, "/metrics").body)
        server.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        assert [answer.status for answer in answers] == [200] * 5
        assert server.process.wait(30) == 0


def test_a_second_signal_ends_the_grace():
    with running(EMBER_DRAIN_GRACE_S="300") as server:
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: ask(server).status == 503)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0


def test_ctrl_c_needs_no_grace():
    with running(EMBER_DRAIN_GRACE_S="300") as server:
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(30) == 0


def test_a_client_that_sends_nothing_does_not_hold_the_process():
    with running(EMBER_DRAIN_TIMEOUT_S="1") as server, connection(server) as client:
        client.sendall(SWAP[:2000])
        time.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0


def test_a_replica_that_fails_says_why_and_ends_with_69(tmp_path):
    manifest = str(broken_manifest(tmp_path))
    once = {"EMBER_WARMUP_RETRY_S": "0", "EMBER_DRAIN_GRACE_S": "2"}
    with running(ready=False, EMBER_MANIFEST=manifest, **once) as server:
        eventually(lambda: ask(server).json["phase"] == "failed")
        assert "sha256" in ask(server).json["last_error"]
        assert server.process.wait(30) == 69
        assert "failed" in phases(server)


def test_a_port_that_is_taken_ends_with_69(live, caplog):
    assert serve(changed(DEFAULTS, port=live.port), Timeline()) == 69
    (record,) = [each for each in caplog.records if each.name == "ember.server"]
    assert (record.message, record.port) == ("cannot listen", live.port)
    assert "in use" in record.reason


def test_localhost_listens_on_all_its_addresses(free_port):
    with running(EMBER_HOST="localhost", EMBER_PORT=str(free_port)) as server:
        for *_, address in socket.getaddrinfo("localhost", free_port, type=socket.SOCK_STREAM):
            with socket.create_connection(address[:2], timeout=20) as client:
                client.sendall(head("GET", "/healthz"))
                assert read_answer(client).status == 200
        assert server.url.endswith(str(free_port))


def test_the_parser_in_pure_python_does_as_well():
    chunked = FORM | {"Transfer-Encoding": "chunked"}
    with running(AIOHTTP_NO_EXTENSIONS="1") as server:
        with connection(server) as client:
            client.sendall(SWAP)
            assert read_answer(client).status == 200
        with connection(server) as client:
            client.sendall(head("POST", "/v1/faces", chunked) + b"3\r\nabc\r\n")
            time.sleep(0.1)
            client.sendall(b"zz\r\n")
            read_answer(client).problem("bad_request", 400)
        with connection(server) as client:
            client.sendall(b"GARBAGE\r\n\r\n")
            read_answer(client).problem("bad_request", 400)


def test_every_line_of_the_log_is_json_with_the_request_id():
    with running() as server:
        body = multipart(("image", COLLINS))
        headers = FORM | {"Content-Length": len(body), "X-Request-Id": "mine"}
        with connection(server) as client:
            client.sendall(head("POST", "/v1/faces", headers) + body)
            assert read_answer(client).status == 200
        (event,) = [event for event in server.events() if event.get("request_id") == "mine"]
        assert (event["message"], event["logger"]) == ("request", "ember.http")
        assert (event["route"], event["status"]) == ("/v1/faces", 200)
