from __future__ import annotations

import json
import threading
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

import pytest

from function.service import work
from tests.function.admission.redis_server import RedisServer
from tests.function.background.events.conftest import cloud as cloud  # noqa: PLC0414 (a fixture)
from tests.function.background.events.conftest import pixels as pixels  # noqa: PLC0414
from tests.function.live import FORM, SOURCE, TARGET, Live, multipart
from tests.function.raw import eventually

HERE = (ip_network("127.0.0.0/8"),)


@pytest.fixture(scope="module")
def live():
    with Live(uri_networks=HERE, queue_limit=1000, watermark="off") as server:
        yield server


@pytest.fixture
def holding(monkeypatch):
    """Makes servers of one thread that decode nothing before they are let go."""

    @contextmanager
    def made(**changes):
        go, decode = threading.Event(), work.decode
        with Live(threads=1, uri_networks=HERE, **changes) as server:
            monkeypatch.setattr(work, "decode", lambda *a, **k: go.wait(60) and decode(*a, **k))
            try:
                yield server, go
            finally:
                monkeypatch.setattr(work, "decode", decode)
                go.set()

    return made


@pytest.fixture
def held(holding):
    """Such a server, and what lets it go."""
    with holding() as server:
        yield server


@pytest.fixture
def redis(needs, free_port, tmp_path):
    options = ("--dir", str(tmp_path), "--appendonly", "yes", "--appendfsync", "always")
    with RedisServer(needs("redis-server"), free_port, *options) as server:
        yield server


def new_id():
    return str(uuid.uuid4())


def put(server, name, *parts, **headers):
    """Put a job of these parts, or of the sample photos."""
    body = multipart(*(parts or (SOURCE, TARGET)))
    return server.send("PUT", f"/v1/jobs/{name}", body, FORM | headers)


def state(server, name, **headers):
    return server.send("GET", f"/v1/jobs/{name}", headers=headers).json["state"]


def finished(server, name, **headers):
    """The job of that name, as soon as it has ended."""
    told = {}

    def ended():
        told.update(server.send("GET", f"/v1/jobs/{name}", headers=headers).json)
        return told["state"] not in {"queued", "running"}

    eventually(ended, 60)
    return told


class Receiver:
    """A real place for callbacks, which answers with `statuses`, the last one for ever."""

    def __init__(self, *statuses):
        self.statuses, self.calls = list(statuses), []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.calls.append((dict(self.headers.items()), body))
                several = len(outer.statuses) > 1
                self.send_response(outer.statuses.pop(0) if several else outer.statuses[0])
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.handler = Handler

    @property
    def told(self):
        return [json.loads(body) for _, body in self.calls]


@contextmanager
def receiving(*statuses):
    receiver = Receiver(*statuses)
    with ThreadingHTTPServer(("127.0.0.1", 0), receiver.handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
        yield receiver
        server.shutdown()
