"""A real server in a process of its own, for tests that speak HTTP to it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from keepalive.exchange import Unreachable
from keepalive.pinger.ping import ping, readyz

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PATIENCE_S = 120


def unused_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Server:
    """A running `python -m function`.

    Attributes:
        url: where it listens, e.g. "http://127.0.0.1:40123".
        process: to signal and to wait for.
        log: the file that it logs to, one JSON object a line.
    """

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def port(self) -> int:
        """The port of `url`."""
        return int(self.url.rpartition(":")[2])

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send one request on a connection of its own; the status, the headers and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def events(self) -> list[dict[str, Any]]:
        """What it has logged so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@contextmanager
def running(*, ready: bool = True, **environ: str) -> Iterator[Server]:
    """Run a server on a free port, and end it with SIGTERM unless the body did.

    Args:
        ready: wait until it takes traffic, not only until it listens.
        environ: further environment variables.
    """
    settings = {"EMBER_PORT": "0", "EMBER_LOG_FORMAT": "json", "EMBER_DRAIN_GRACE_S": "0"}
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "function"],
                env={**os.environ, **settings, **environ},
                stderr=stderr,
            )
        try:
            url = _until(lambda: _listening(log), process, log)
            if ready:
                _until(lambda: _ready(url), process, log)
            yield Server(url, process, log)
        finally:
            process.terminate()
            try:
                process.wait(60)
            finally:
                process.kill()


def _until(attempt: Any, process: subprocess.Popen[bytes], log: Path) -> Any:
    """The first true result of `attempt`."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        if result := attempt():
            return result
        time.sleep(0.05)
    raise AssertionError(f"the server (exit code {process.poll()}) logged:\n{log.read_text()}")


def _listening(log: Path) -> str | None:
    lines = [line for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
    events = [json.loads(line) for line in lines if line.startswith("{")]
    return next((event["url"] for event in events if event["message"] == "listening"), None)


def _ready(url: str) -> bool:
    try:
        return ping(readyz(url)).ready
    except Unreachable:
        return False
