"""Asking a server whether it is ready: real servers, good, slow and odd ones."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading

import pytest

from keepalive.exchange import Unreachable
from keepalive.ping import Answer, ping, readyz, wait
from tests.keepalive.answering import LOADING, READY, answering, serving


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


def test_an_address_with_a_password_is_refused_without_repeating_it():
    with pytest.raises(ValueError, match="has a user name in it") as refused:
        readyz("https://me:secret@host")
    assert "secret" not in str(refused.value)


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


def test_a_server_that_drips_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()

        def drip():
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                while not stop.wait(0.05):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(Unreachable, match="timed out"):
            ping(f"http://127.0.0.1:{listener.getsockname()[1]}/readyz", timeout_s=0.3)
        stop.set()
        thread.join()


def test_headers_are_sent_and_a_redirect_does_not_take_them_elsewhere():
    with answering(200, READY) as elsewhere:
        moved = {"Location": f"{elsewhere.url}/readyz"}
        with answering(302, b"", headers=moved) as server, pytest.raises(Unreachable) as told:
            ping(readyz(server.url), headers={"Authorization": "Bearer x"})
    assert server.heads[0]["Authorization"] == "Bearer x"
    assert elsewhere.asked == []
    assert str(told.value) == f"it answers 302; the address to ask is {elsewhere.url}/readyz"


class Awaking:
    """A server that takes some tries to be ready, in a time of its own."""

    def __init__(self, *answers, held_s=0.0):
        self.answers, self.held_s = list(answers), held_s
        self.now, self.limits = 0.0, []

    def ask(self, timeout_s):
        self.limits.append(timeout_s)
        self.now += self.held_s
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def sleep(self, seconds):
        self.now += seconds

    def wait(self, timeout_s, wait_s):
        return wait(self.ask, timeout_s, wait_s, clock=lambda: self.now, sleep=self.sleep)


class TestWaiting:
    READY = Answer(True, "ready", None, 0.1)
    LOADING = Answer(False, "loading", "2 models", 0.1)
    NOBODY = Unreachable("Connection refused")

    def test_without_it_there_is_one_try(self):
        server = Awaking(self.LOADING, self.READY)
        assert server.wait(5, 0) is self.LOADING
        assert server.limits == [5]

    def test_it_asks_until_the_server_is_ready(self):
        server = Awaking(self.NOBODY, self.LOADING, self.READY)
        assert server.wait(5, 60) is self.READY
        assert len(server.limits) == 3

    def test_a_try_may_be_held_for_all_of_the_time_that_is_left(self):
        server = Awaking(self.LOADING, self.READY, held_s=20)
        server.wait(5, 60)
        assert server.limits == [60, 39]

    def test_when_the_time_is_up_the_last_answer_counts(self):
        assert Awaking(self.NOBODY, self.LOADING).wait(5, 3) is self.LOADING
        server = Awaking(self.LOADING, self.NOBODY)
        with pytest.raises(Unreachable, match="Connection refused"):
            server.wait(5, 3)
        assert server.now == 3
        assert server.limits[-1] == 5


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

    def test_it_waits_for_a_server_that_starts(self):
        answers = [(503, LOADING), (200, READY)]
        with serving(lambda _: answers.pop(0)) as server:
            done = self.run(server.url, "--wait", "30")
        assert done.returncode == 0
        assert server.asked == ["/readyz", "/readyz"]

    def test_too_slow_an_answer_is_told(self):
        with answering(200, READY) as server:
            done = self.run(server.url, "--max-latency", "0.000001")
        assert done.returncode == 75
        assert "at most 1e-06 are allowed" in done.stderr

    def test_json_is_one_line_whatever_happens(self, free_port):
        with answering(503, LOADING) as server:
            done = self.run(server.url, "--json")
        assert (done.returncode, done.stderr) == (69, "")
        (line,) = done.stdout.splitlines()
        told = json.loads(line)
        assert told["outcome"] == "unavailable"
        assert told["reason"] == "waiting for 2 models"
        assert told["answer"]["phase"] == "loading"
        nobody = self.run(f"127.0.0.1:{free_port}", "--json")
        assert nobody.returncode == 69
        assert json.loads(nobody.stdout)["reason"] == "Connection refused"

    def test_a_header_is_sent_and_a_bad_one_is_refused_without_repeating_it(self):
        with answering(200, READY) as server:
            assert self.run(server.url, "--header", "Authorization: Bearer x").returncode == 0
        assert server.heads[0]["Authorization"] == "Bearer x"
        for bad in ("secret", ": secret", "X: se\ncret", "X: sécret"):
            done = self.run("127.0.0.1:1", "--header", bad)
            assert done.returncode == 2
            assert "cret" not in done.stderr

    def test_the_time_to_wait_can_be_given(self):
        with answering(200, READY, threading.Event()) as server:
            done = self.run(server.url, "--timeout", "0.2")
        assert done.returncode == 69
        assert "timed out" in done.stderr
        assert self.run("--timeout", "0").returncode == 2
