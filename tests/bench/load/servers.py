"""Who is under load: Ember, and each peer with its own batching on, as documented and tuned."""

from __future__ import annotations

import base64
import json
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from function.service.service import sample
from tests.bench.client import swap_request
from tests.bench.cold.contenders import Contender
from tests.bench.cold.measure import running, until_ready

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import psutil

_PEERS = "tests.bench.load.peers"


@dataclass(frozen=True, slots=True)
class Server:
    """One that runs.

    Attributes:
        name: in the tables.
        port: of this machine.
        request: the bytes of a request for a swap.
        process: its first process.
    """

    name: str
    port: int
    request: bytes
    process: psutil.Process

    def with_headers(self, **headers: str) -> bytes:
        """The request with some headers more; `_` stands for `-`."""
        lines = "".join(f"{name.replace('_', '-')}: {text}\r\n" for name, text in headers.items())
        first, _, rest = self.request.partition(b"\r\n")
        return first + b"\r\n" + lines.encode() + rest

    def settle(self) -> None:
        """Wait until it has ended what it was doing, be it for nobody."""
        for _ in range(60):
            before = self.cpu_s()
            time.sleep(0.15)
            if self.cpu_s() - before < 0.03:
                return

    def cpu_s(self) -> float:
        """Seconds of CPU that it has taken so far."""
        return sum(sum(each.cpu_times()[:2]) for each in self.family())

    def family(self) -> list[psutil.Process]:
        """All of its processes."""
        return [self.process, *self.process.children(recursive=True)]


@contextmanager
def awake(running: Iterable[Server], server: Server | None = None) -> Iterator[None]:
    """Let only this one run meanwhile, or none: what others do for nobody counts against it."""
    others = [one for each in running if each is not server for one in each.family()]
    try:
        for process in others:
            process.suspend()
        yield
    finally:
        for process in others:
            process.resume()


def everyone(timeout_s: float) -> list[Contender]:
    """Ember and the peers; these as documented and tuned.

    Args:
        timeout_s: how long a peer may take for a request; Ember is told by each request.
    """
    python, photos = sys.executable, _photos()
    peers = [
        Contender(
            "mosec",
            (
                *(python, "-m", f"{_PEERS}.mosec_app", "--port", "{port}"),
                *("--timeout", str(round(timeout_s * 1e3))),
            ),
            ready="/",
            swap=_post("/inference", photos),
        ),
        Contender(
            "LitServe",
            (python, "-m", f"{_PEERS}.litserve_app"),
            ready="/health",
            swap=_post("/predict", photos),
        ),
        Contender(
            "BentoML",
            (python, "-m", "bentoml", "serve", f"{_PEERS}.bentoml_app:Swap", "-p", "{port}"),
            ready="/readyz",
            swap=_post("/swap", {"photos": [photos]}),
        ),
    ]
    return [ember(), *(replace(peer, tuned=tuned) for tuned in (True, False) for peer in peers)]


def ember(name: str = "Ember") -> Contender:
    """Ember itself."""
    return Contender(
        name,
        (sys.executable, "-m", "function"),
        ready="/readyz",
        swap=swap_request(sample("hopper"), sample("collins")),
    )


@contextmanager
def started(
    contenders: Sequence[Contender], environs: Sequence[dict[str, str]]
) -> Iterator[dict[str, Server]]:
    """Some servers, ready, warm and idle, by name."""
    with ExitStack() as stack:
        servers = []
        for contender, environ in zip(contenders, environs, strict=True):
            port, _, process = stack.enter_context(running(contender, environ))
            servers.append(Server(contender.label, port, contender.swap, process))
        for contender, server in zip(contenders, servers, strict=True):
            until_ready(contender, server.port)
        yield {server.name: server for server in servers}


def _photos() -> dict[str, str]:
    return {
        name: base64.b64encode(sample(photo)).decode()
        for name, photo in (("source", "hopper"), ("target", "collins"))
    }


def _post(path: str, body: object) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data
