"""Starting a server and looking at it from outside: when it answers, what it holds."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.bench.cold.contenders import Contender

PATIENCE_S = 90
_ASK_EVERY_S = 0.005
NEXT = 50
_HIGHEST = re.compile(r"VmHWM:\s+(\d+) kB")


@dataclass(frozen=True, slots=True)
class Start:
    """One start: seconds until the first byte of the health path, and until the first swap."""

    health: float
    swap: float


@dataclass(frozen=True, slots=True)
class Service:
    """A server at work: the first swap over the median of the next ones, and megabytes at most."""

    first: float
    megabytes: float


def floor(command: list[str], environ: dict[str, str]) -> float:
    """Seconds until the bare script has swapped."""
    began = time.perf_counter()
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as process:
        line = process.stdout.readline()
        took = time.perf_counter() - began
    assert line == b"swapped\n", line
    return took


def start(contender: Contender, environ: dict[str, str]) -> Start:
    """Start a server, ask for its health and its readiness, as a platform does, then for a swap."""
    with running(contender, environ) as (port, began, _):
        found: dict[str, float] = {}

        def health() -> None:
            found["health"] = _until(port, _get(contender.health), bool, _ASK_EVERY_S) - began

        asking = threading.Thread(target=health)
        asking.start()
        _until(port, _get(contender.ready), _fine, _ASK_EVERY_S)
        swap = _until(port, contender.swap, _fine, _ASK_EVERY_S) - began
        asking.join()
    return Start(found["health"], swap)


def service(contender: Contender, environ: dict[str, str]) -> Service:
    """Start a server, wait until it says that it is ready, and send it swaps one by one."""
    with running(contender, environ) as (port, _, process):
        _until(port, _get(contender.ready), _fine, _ASK_EVERY_S)
        times = []
        for _ in range(1 + NEXT):
            began = time.perf_counter()
            status, _ = _exchange(port, contender.swap)
            times.append(time.perf_counter() - began)
            assert status == 200, f"{contender.label} answered {status}"
        megabytes = _peak(process)
    first, *rest = times
    return Service(first / sorted(rest)[len(rest) // 2], megabytes)


def until_ready(contender: Contender, port: int) -> None:
    """Wait until a server says that it can serve."""
    _until(port, _get(contender.ready), _fine, _ASK_EVERY_S)


@contextmanager
def running(
    contender: Contender, environ: dict[str, str]
) -> Iterator[tuple[int, float, psutil.Process]]:
    """A server from its very beginning: (port, when it was started, process)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = {"PORT": str(port), "BENCH_TUNED": str(int(contender.tuned))}
    command = [word.format(port=port) for word in contender.command]
    log = Path("build/bench-cold") / f"{contender.label}.log"
    with log.open("wb") as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            env=environ | own,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield port, began, psutil.Process(process.pid)
    except BaseException as error:
        error.add_note(f"{contender.label} logged to {log}")
        raise
    finally:
        _end(process)


def _peak(process: psutil.Process) -> float:
    """Megabytes that a process and its children held at most (RSS), each at its own time.

    It is read afterwards, as looking at a process holds it up.
    """
    family = [process, *process.children(recursive=True)]
    texts = [Path(f"/proc/{each.pid}/status").read_text() for each in family]
    return sum(int(found[1]) for text in texts if (found := _HIGHEST.search(text))) * 1024 / 1e6


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def _fine(status: int) -> bool:
    return status == 200


def _until(port: int, request: bytes, enough: Callable[[int], bool], pause: float) -> float:
    """When the first answer came whose status is enough."""
    end = time.perf_counter() + PATIENCE_S
    while time.perf_counter() < end:
        try:
            status, came = _exchange(port, request)
        except (OSError, HTTPException):
            pass
        else:
            if enough(status):
                return came
        time.sleep(pause)
    raise TimeoutError(f"no answer to {request[:60]!r} within {PATIENCE_S} s")


def _exchange(port: int, request: bytes) -> tuple[int, float]:
    """The status of an answer that came whole, and when its first byte came."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall(request)
        connection.recv(1, socket.MSG_PEEK)
        came = time.perf_counter()
        answer = HTTPResponse(connection)
        answer.begin()
        answer.read()
        return answer.status, came


def _end(process: subprocess.Popen) -> None:
    """End a server and everything that it started, which is a session of its own."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(10)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
