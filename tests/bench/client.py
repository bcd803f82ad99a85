"""A load generator that costs next to nothing: fixed request bytes over kept-alive sockets."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.request import urlopen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BOUNDARY = "ember-bench"


def swap_request(source: bytes, target: bytes, host: str = "127.0.0.1") -> bytes:
    """The bytes of one `POST /v1/swap` with two JPEG files."""
    body = (
        b"".join(
            b'--%s\r\nContent-Disposition: form-data; name="%s"; filename="%s.jpg"\r\n'
            b"Content-Type: image/jpeg\r\n\r\n%s\r\n" % (_BOUNDARY.encode(), name, name, data)
            for name, data in ((b"source", source), (b"target", target))
        )
        + b"--%s--\r\n" % _BOUNDARY.encode()
    )
    head = (
        f"POST /v1/swap HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n"
        f"Content-Type: multipart/form-data; boundary={_BOUNDARY}\r\n\r\n"
    )
    return head.encode() + body


class Connection:
    """One kept-alive connection to the server."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def exchange(self, request: bytes) -> tuple[dict[str, str], bytes]:
        """Send a request and read its answer: headers (names in lower case) and body.

        Raises:
            RuntimeError: the status is not 200.
        """
        self._socket.sendall(request)
        status = self._file.readline()
        headers = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = self._file.read(int(headers["content-length"]))
        if b" 200 " not in status:
            raise RuntimeError(f"{status!r}: {body[:300]!r}")
        return headers, body

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._socket.close()


def throughput(port: int, request: bytes, clients: int, seconds: float) -> float:
    """Answers per second with `clients` connections that each send the next request at once."""
    done = [0] * clients
    end = time.perf_counter() + seconds

    def work(number: int) -> None:
        connection = Connection(port)
        while time.perf_counter() < end:
            connection.exchange(request)
            done[number] += 1
        connection.close()

    began = time.perf_counter()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - began)


@contextmanager
def server(environ: Mapping[str, str] | None = None) -> Iterator[tuple[int, int]]:
    """A real `ember serve` in a process of its own, ready: (port, process id).

    Args:
        environ: its settings, besides those of this process.
    """
    import os
    import subprocess
    import sys

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "function"],
        env={
            **os.environ,
            "EMBER_LOG_LEVEL": "warning",
            **(environ or {}),
            "EMBER_PORT": str(port),
        },
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_ready(port, process)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(30)


def _wait_ready(port: int, process: object) -> None:
    for _ in range(12_000):
        try:
            with urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.005)
    raise RuntimeError("the server did not become ready within a minute")
