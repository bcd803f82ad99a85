"""Several replicas and one Redis: any of them answers, and a job outlives the one that had it."""

from __future__ import annotations

import http.client
import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from redis import Redis

from tests.function.live import COLLINS, FORM, HOPPER, SOURCE, TARGET, multipart
from tests.function.raw import eventually
from tests.running import running

from .conftest import new_id, pixels


class Store:
    """Takes results by PUT, as signed URLs do, when it is let; counts who waits and who wrote."""

    def __init__(self):
        self.open, self.waiting = threading.Event(), threading.Semaphore(0)
        self.written = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.waiting.release()
                outer.open.wait(60)
                outer.written.append((self.path, body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.handler = Handler


@pytest.fixture
def store():
    store = Store()
    with ThreadingHTTPServer(("127.0.0.1", 0), store.handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        store.url = f"http://127.0.0.1:{server.server_port}"
        yield store
        store.open.set()
        server.shutdown()


@pytest.fixture
def environ(redis):
    """What every replica is told."""
    return {
        "EMBER_REDIS_URL": redis.url,
        "EMBER_REDIS_TIMEOUT_S": "2",
        "EMBER_URI_NETWORKS": "127.0.0.0/8",
        "EMBER_JOB_LEASE_S": "2",
        "EMBER_THREADS": "1",
    }


def send(server, method, path, body=None, headers=None):
    """The status of an answer, its headers and its body; status 0 when there is none."""
    try:
        return server.send(method, path, body, headers)
    except (OSError, http.client.HTTPException):
        return 0, {}, b""


def put(server, name, *parts):
    status, _, body = send(server, "PUT", f"/v1/jobs/{name}", multipart(*parts), FORM)
    return status, json.loads(body)


def job(server, name):
    status, _, body = send(server, "GET", f"/v1/jobs/{name}")
    return json.loads(body) if status == 200 else {"state": status}


@contextmanager
def replicas(environ, count=2):
    with ThreadPoolExecutor(count) as pool:
        contexts = [running(**environ) for _ in range(count)]
        servers = list(pool.map(lambda each: each.__enter__(), contexts))
        try:
            yield servers
        finally:
            for each in contexts:
                each.__exit__(None, None, None)


def test_any_replica_tells_of_a_job_cancels_it_and_has_its_result(environ):
    with replicas(environ) as (first, second):
        name = new_id()
        assert put(first, name, SOURCE, TARGET)[0] == 201
        assert put(second, name, SOURCE, TARGET)[0] == 200
        assert put(second, name, SOURCE, ("target", HOPPER))[0] == 409
        eventually(lambda: job(second, name)["state"] == "succeeded", 60)
        uri = job(second, name)["items"][0]["result"]["uri"]
        photos = [send(each, "GET", uri)[2] for each in (first, second)]
        assert photos[0] == photos[1]
        assert pixels(photos[0]).shape == pixels(COLLINS).shape
        assert send(second, "DELETE", f"/v1/jobs/{name}")[0] == 200
        assert send(first, "GET", uri)[0] == 404


def test_a_job_of_a_replica_that_is_killed_is_done_by_another(environ, store):
    with replicas(environ) as servers:
        name = new_id()
        targets = [("target", COLLINS), ("target", HOPPER)]
        outputs = ("output", f"{store.url}/0 {store.url}/1")
        status, told = put(servers[0], name, SOURCE, *targets, outputs)
        assert status == 201, told
        assert store.waiting.acquire(timeout=60)  # a result is about to be written
        worker = _worker(servers, store)
        worker.process.send_signal(signal.SIGKILL)
        worker.process.wait()
        store.open.set()
        (other,) = [each for each in servers if each is not worker]
        eventually(lambda: job(other, name)["state"] == "succeeded", 60)
        assert job(other, name)["progress"] == {"done": 2, "total": 2}
        for path, target in (("/0", COLLINS), ("/1", HOPPER)):
            photos = {body for where, body in store.written if where == path}
            first, *rest = [pixels(body).astype(int) for body in photos]
            assert first.shape == pixels(target).shape
            assert all(np.abs(first - each).max() <= 1 for each in rest)
        (line,) = [e for e in other.events() if e["message"] == "taking a job up again"]
        assert line["tries"] == 2


def _worker(servers, store):
    """The replica that has a connection to the store."""
    import psutil

    port = int(store.url.rpartition(":")[2])
    for server in servers:
        for each in psutil.Process(server.process.pid).net_connections("tcp"):
            if each.raddr and each.raddr.port == port and each.status == "ESTABLISHED":
                return server
    raise AssertionError("nobody writes")


def test_a_job_is_handed_over_when_its_replica_is_told_to_stop(environ, store):
    environ |= {"EMBER_JOB_LEASE_S": "60", "EMBER_DRAIN_TIMEOUT_S": "0.5"}
    with running(**environ) as first:
        name = new_id()
        put(first, name, SOURCE, TARGET, ("output", f"{store.url}/0"))
        assert store.waiting.acquire(timeout=60)
        with running(**environ) as second, ThreadPoolExecutor(1) as pool:
            stream = pool.submit(send, first, "GET", f"/v1/jobs/{name}/events")
            time.sleep(0.5)
            first.process.terminate()
            assert b"event: running" in stream.result(10)[2]  # it does not keep the replica
            assert first.process.wait(30) == 0
            store.open.set()
            eventually(lambda: job(second, name)["state"] == "succeeded", 20)  # not after a minute


def test_a_photo_that_is_made_after_a_job_was_cancelled_elsewhere_does_not_stay(environ, redis):
    with replicas(environ) as servers:
        for number in range(6):
            name = new_id()
            put(servers[number % 2], name, SOURCE, TARGET, ("format", "png"))
            time.sleep(0.02 * number)
            for server in servers:
                assert send(server, "DELETE", f"/v1/jobs/{name}")[0] == 200
        client = Redis.from_url(redis.url)
        time.sleep(3)
        assert client.keys("ember:jobs:photo:*") == []
        client.close()


def test_jobs_survive_a_new_start_of_redis(environ, redis):
    with running(**environ) as server:
        names = [new_id() for _ in range(6)]
        for name in names:
            assert put(server, name, SOURCE, TARGET)[0] == 201
        redis.kill()
        status, headers, body = send(server, "GET", f"/v1/jobs/{names[0]}")
        assert (status, json.loads(body)["code"]) == (503, "jobs_unavailable")
        assert int(headers["Retry-After"]) >= 1
        redis.start()
        for name in names:
            eventually(lambda name=name: job(server, name)["state"] == "succeeded", 60)
