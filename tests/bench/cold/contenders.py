"""Who starts: Ember, the floor, and each peer as documented and tuned."""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import dataclass

from function.service.service import sample
from tests.bench.client import swap_request

_PEERS = "tests.bench.cold.peers"


@dataclass(frozen=True, slots=True)
class Contender:
    """One server, and how it is asked.

    Attributes:
        name: in the table.
        command: starts it; `{port}` stands for the port.
        health: the path that tells that it is alive.
        ready: the path that tells that it can serve.
        swap: the bytes of a request for a swap.
        tuned: whether it loads as Ember does.
    """

    name: str
    command: tuple[str, ...]
    health: str = "/healthz"
    ready: str = "/healthz"
    swap: bytes = b""
    tuned: bool = False

    @property
    def label(self) -> str:
        """What it is called in the table."""
        return f"{self.name}, tuned" if self.tuned else self.name


def everyone() -> list[Contender]:
    """All of them but the floor, Ember first."""
    python = sys.executable
    ember = Contender(
        "Ember",
        (python, "-m", "function"),
        ready="/readyz",
        swap=swap_request(sample("hopper"), sample("collins")),
    )
    peers = [
        (
            "mosec",
            (python, "-m", f"{_PEERS}.mosec_app", "--port", "{port}", "--timeout", "60000"),
            ("/", "/", "/inference"),
        ),
        ("LitServe", (python, "-m", f"{_PEERS}.litserve_app"), ("/health", "/health", "/predict")),
        (
            "BentoML",
            (python, "-m", "bentoml", "serve", f"{_PEERS}.bentoml_app:Swap", "-p", "{port}"),
            ("/livez", "/readyz", "/swap"),
        ),
        (
            "functions-framework",
            (
                *(python, "-m", "functions_framework", "--target", "swap", "--port", "{port}"),
                *("--source", "tests/bench/cold/peers/functions_app.py"),
            ),
            ("/", "/", "/"),
        ),
        (
            "FastAPI singleton",
            (python, "-m", "uvicorn", f"{_PEERS}.fastapi_app:app", "--port", "{port}"),
            ("/healthz", "/healthz", "/swap"),
        ),
        ("aiohttp", (python, "-m", f"{_PEERS}.aiohttp_app"), ("/healthz", "/healthz", "/swap")),
    ]
    return [ember] + [
        Contender(name, command, health, ready, _json(path), tuned)
        for name, command, (health, ready, path) in peers
        for tuned in (False, True)
    ]


def _json(path: str) -> bytes:
    """A request with both sample photos in base64."""
    photos = {
        name: base64.b64encode(sample(photo)).decode()
        for name, photo in (("source", "hopper"), ("target", "collins"))
    }
    body = json.dumps(photos).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
