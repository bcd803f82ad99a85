"""Raw sockets, for everything that a well-behaved client does not do."""

from __future__ import annotations

import socket
import time
from contextlib import closing, contextmanager
from http.client import HTTPResponse

from tests.function.live import Answer


@contextmanager
def connection(live, timeout=20.0):
    with socket.create_connection(("127.0.0.1", live.port), timeout=timeout) as client:
        yield client


def head(method, path, headers=None, version="HTTP/1.1"):
    """The head of a request, as bytes."""
    lines = [f"{method} {path} {version}", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def read_answer(client, method="GET") -> Answer:
    with closing(HTTPResponse(client, method=method)) as response:
        response.begin()
        return Answer(response.status, response.headers, response.read())


def closed(client):
    """Whether the server has closed the connection; waits for it."""
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def eventually(condition, seconds=20.0):
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)
