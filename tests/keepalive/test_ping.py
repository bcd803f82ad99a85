"""Asking a server whether it is ready: real servers, good, slow and odd ones."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from keepalive.ping import Unreachable, ping, readyz


@contextmanager
def answering(status, body, wait=None):
    """A tiny server that always gives one answer, after `wait` is set."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            if wait:
                wait.wait(10)
            with suppress(ConnectionError):  # who asked has given up
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            if wait:
                wait.set()
            server.shutdown()
            thread.join()


READY = b'{"ready": true, "phase": "ready", "waiting_for": null}'
LOADING = b'{"ready": false, "phase": "loading", "waiting_for": "2 models"}'


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://host:8080", "http://host:8080/readyz"),
        ("http://host/", "http://host/readyz"),
        ("https://host/ember/readyz", "https://host/ember/readyz"),
        ("host:8080", "http://host:8080/readyz"),
        ("[::1]:8080", "http://[::1]:8080/readyz"),
    ],
)
def test_an_address_is_completed(given, address):
    assert readyz(given) == address


@pytest.mark.parametrize("given", ["file:///etc/passwd", "ftp://host", "http://", "", ":8080"])
def test_what_is_no_address_is_refused(given):
    with pytest.raises(ValueError, match="is not an http or https address"):
        readyz(given)


def test_a_ready_server_is_ready():
    with answering(200, READY) as server:
        answer = ping(readyz(server.url))
    assert answer.ready
    assert answer.phase == "ready"
    assert answer.waiting_for is None
    assert 0 < answer.latency_s < 10
    assert server.asked == ["/readyz"]


def test_a_server_that_is_loading_says_what_it_waits_for():
    with answering(503, LOADING) as server:
        answer = ping(readyz(server.url))
    assert not answer.ready
    assert (answer.phase, answer.waiting_for) == ("loading", "2 models")


@pytest.mark.parametrize("body", [b"", b"hello", b"[]", b"{}", b"\xff", b'"phase"'])
def test_a_server_that_is_no_ember_is_not_ready(body):
    with answering(200, body) as server, pytest.raises(Unreachable, match="not as Ember does"):
        ping(readyz(server.url))


def test_nobody_there_is_named(free_port):
    with pytest.raises(Unreachable, match="Connection refused"):
        ping(f"http://127.0.0.1:{free_port}/readyz")


def test_a_server_that_does_not_answer_is_given_up():
    with (
        answering(200, READY, threading.Event()) as server,
        pytest.raises(Unreachable, match="timed out"),
    ):
        ping(readyz(server.url), timeout_s=0.2)


def test_a_server_that_does_not_speak_http_is_named():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up():
            connection, _ = listener.accept()
            connection.recv(1000)
            connection.sendall(b"SSH-2.0-none\r\n")
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(Unreachable):
            ping(f"http://127.0.0.1:{listener.getsockname()[1]}/readyz")
        thread.join()


class TestCommand:
    """`python -m keepalive ping`, which is also `ember ping`."""

    def run(self, *words):
        return subprocess.run(
            [sys.executable, "-m", "keepalive", "ping", *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def test_a_real_server_is_ready(self, server):
        done = self.run(server.url)
        assert done.returncode == 0
        assert done.stdout.startswith(f"{server.url}/readyz: ready (")
        assert done.stdout.endswith(" ms)\n")

    def test_a_server_that_is_not_ready_is_unavailable(self):
        with answering(503, LOADING) as server:
            done = self.run(server.url)
        assert done.returncode == 69
        assert ": loading (" in done.stderr
        assert "waiting for 2 models" in done.stderr

    def test_nobody_there_is_unavailable(self, free_port):
        done = self.run(f"127.0.0.1:{free_port}")
        assert done.returncode == 69
        assert "Connection refused" in done.stderr

    def test_a_wrong_address_is_a_usage_error(self):
        assert self.run("ftp://host").returncode == 2

    def test_the_time_to_wait_can_be_given(self):
        with answering(200, READY, threading.Event()) as server:
            done = self.run(server.url, "--timeout", "0.2")
        assert done.returncode == 69
        assert "timed out" in done.stderr
        assert self.run("--timeout", "0").returncode == 2
