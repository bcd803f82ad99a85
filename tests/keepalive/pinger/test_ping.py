"""Asking a server whether it is ready: real servers, good, slow and odd ones."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from keepalive.cli import commands
from keepalive.exchange import Unreachable
from keepalive.pinger.ping import Readiness, ping, readyz, wait
from tests.keepalive.answering import LOADING, READY, answering, serving
from tests.keepalive.recorded import wait_for


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
    READY = Readiness(True, "ready", None, 0.1)
    LOADING = Readiness(False, "loading", "2 models", 0.1)
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

    def run(self, *words, env=None):
        return subprocess.run(
            [sys.executable, "-m", "keepalive", "ping", *words],
            env=env,
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

    def test_a_header_may_have_a_secret_of_the_environment(self, monkeypatch):
        monkeypatch.setenv("TOKEN", "ember_1")
        with answering(200, READY) as server:
            done = self.run(server.url, "--header", "Authorization: Bearer ${TOKEN}")
            assert done.returncode == 0, done.stderr
            assert server.heads[-1]["Authorization"] == "Bearer ember_1"

    @pytest.mark.parametrize("value", ["two\nlines", "\u00e9", "\x7f"])
    def test_what_no_header_may_have_is_refused_also_from_there(self, monkeypatch, value):
        monkeypatch.setenv("TOKEN", value)
        done = self.run("127.0.0.1:1", "--header", "Authorization: ${TOKEN}")
        assert done.returncode == 2
        assert value not in done.stderr

    def test_a_variable_that_is_not_set_is_named(self, monkeypatch):
        monkeypatch.delenv("TOKEN", raising=False)
        done = self.run("127.0.0.1:1", "--header", "Authorization: Bearer ${TOKEN}")
        assert done.returncode == 2
        assert "TOKEN is not set in the environment" in done.stderr

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

    def test_metrics_go_into_a_file(self, tmp_path):
        file = tmp_path / "ping.prom"
        with answering(200, READY) as server:
            assert self.run(server.url, f"--metrics={file}").returncode == 0
        lines = file.read_text().splitlines()
        assert 'ember_ping{outcome="well"} 1.0' in lines
        assert 'ember_ping{outcome="slow"} 0.0' in lines
        told = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        assert 0 < float(told["ember_ping_ready_seconds"]) < 10
        assert float(told["ember_ping_time_seconds"]) == pytest.approx(time.time(), abs=60)
        with answering(503, LOADING) as server:
            assert self.run(server.url, f"--metrics={file}").returncode == 69
        lines = file.read_text().splitlines()
        assert 'ember_ping{outcome="unavailable"} 1.0' in lines
        assert not any("well_time" in line for line in lines)

    def test_metrics_that_cannot_be_told_are_a_failure(self, tmp_path, free_port):
        with answering(200, READY) as server:
            done = self.run(server.url, f"--metrics={tmp_path}/none/ping.prom")
            assert done.returncode == 74
            assert "cannot be written to" in done.stderr
            done = self.run(server.url, f"--push=http://127.0.0.1:{free_port}")
            assert done.returncode == 74
            assert "cannot be pushed" in done.stderr
            assert "Connection refused. See that it is the address" in done.stderr
        with answering(200, READY) as server, answering(404, b"") as other:
            assert self.run(server.url, f"--push={other.url}").returncode == 74

    def test_a_pushgateway_keeps_when_it_was_last_well(self, needs, tmp_path, free_port):
        program, url = needs("prometheus-pushgateway"), f"http://127.0.0.1:{free_port}"
        words = [program, f"--web.listen-address=127.0.0.1:{free_port}", "--log.level=error"]
        with subprocess.Popen(words, cwd=tmp_path) as gateway:
            try:
                wait_for(f"{url}/-/ready", gateway)
                answers = [(200, READY), (503, LOADING)]
                with serving(lambda _: answers.pop(0)) as server:
                    assert self.run(server.url, f"--push={url}").returncode == 0
                    assert self.run(server.url, f"--push={url}").returncode == 69
                with urlopen(f"{url}/metrics") as answer:
                    lines = answer.read().decode().splitlines()
            finally:
                gateway.terminate()
        about = f'instance="{server.url}/readyz",job="ember-ping"'
        assert f'ember_ping{{{about},outcome="unavailable"}} 1' in lines
        assert f'ember_ping{{{about},outcome="well"}} 0' in lines
        (well,) = [
            line for line in lines if line.startswith(f"ember_ping_well_time_seconds{{{about}")
        ]
        (last,) = [line for line in lines if line.startswith(f"ember_ping_time_seconds{{{about}")]
        assert float(well.split()[1]) < float(last.split()[1])

    def test_pings_do_not_all_come_at_once(self, monkeypatch):
        waits = []
        monkeypatch.setattr("keepalive.pinger.command.time.sleep", waits.append)
        with answering(200, READY) as server:
            for _ in range(20):
                done = CliRunner().invoke(commands, ["ping", server.url, "--jitter=30"])
                assert done.exit_code == 0
        assert all(0 <= wait <= 30 for wait in waits)
        assert len(set(waits)) == 20

    def test_a_server_is_who_its_certificate_says(self, tmp_path, certificate):
        """SSL_CERT_FILE names who is trusted; without it, the system's are."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        with answering(200, READY, tls=context) as server:
            url = server.url.replace("http://127.0.0.1", "https://localhost")
            done = self.run(url)
            assert done.returncode == 69
            assert "certificate verify failed" in done.stderr
            trusted = {**os.environ, "SSL_CERT_FILE": str(certificate)}
            assert self.run(url, env=trusted).returncode == 0
            assert self.run(url.replace("localhost", "127.0.0.1"), env=trusted).returncode == 69


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Key and certificate of `localhost`, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path
