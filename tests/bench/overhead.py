"""`make bench-overhead`: what Ember's own part of a request costs, against bare aiohttp.

A call that does nothing goes through all of admission (identity, lane, deadline, queue, body,
quota) and through the edge (ids, timings, metrics, log) of the real application; the other server
is aiohttp's smallest application with the same answer. Both run on uvloop in a process of their
own, one after the other, several times; the client costs a fraction of either.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import psutil
import uvloop
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.process.wiring.server import WiredServer

ANSWER = b'{"done": true}'
CLIENTS = 32
GOAL = 0.8
SIZES = (2, 100_000, 2_000_000)


def bare() -> web.Application:
    """The smallest application."""

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=ANSWER, content_type="application/json")

    app = web.Application(client_max_size=0)
    app.router.add_post("/noop", handle)
    return app


def ember(keys: Path) -> WiredServer:
    """Ember's server with one more call, which does nothing."""
    from function.http.admission import HttpAdmission
    from function.process.wiring.server import build_server
    from function.process.wiring.service import build_service
    from function.service.health import Health
    from function.settings import load
    from function.telemetry import logs
    from warmup.replica import Replica
    from warmup.settings.variables import replace

    logs.setup("json", "info")
    policy = keys.with_name("policy.toml")
    settings = replace(load({}), auth="keys", keys=keys, policy=policy)
    service = build_service(settings)
    health = Health(Replica(service), service, settings.replica.stuck_s)
    server = build_server(settings, health)
    admission = HttpAdmission(server.admission)

    async def handle(request: web.Request) -> web.Response:
        async with admission.admit(request) as admitted:
            await server.bodies.read(request)
            async with admitted.work(tokens=1):
                return web.Response(body=ANSWER, content_type="application/json")

    server.app.router.add_post("/noop", handle)
    return server


async def serve(name: str, port: int, keys: Path) -> None:
    """Serve one of the two until the process is ended."""
    if name == "bare":
        runner = web.AppRunner(bare(), access_log=None)
    else:
        from function.http.connection import Runner

        server = ember(keys)
        runner = Runner(server.app, server.edge, shutdown_timeout=1, answer_timeout=60)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    gc.freeze()  # as a replica does when it is ready
    print("listening", flush=True)
    await asyncio.Event().wait()


class Client(asyncio.Protocol):
    """One connection that sends the next request as soon as the last one is answered."""

    def __init__(self, request: bytes) -> None:
        self._request, self._seen = request, b""
        self.done = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if self._seen.endswith(ANSWER):
            if not self._seen.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(self._seen[:500])
            self.done += 1
            self._seen = b""
            self._transport.write(self._request)  # type: ignore[attr-defined]

    def close(self) -> None:
        self._transport.close()


async def load(port: int, request: bytes, seconds: float) -> float:
    """Answers per second."""
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: Client(request), "127.0.0.1", port)
        for _ in range(CLIENTS)
    ]
    clients = [protocol for _, protocol in made]
    await asyncio.sleep(0.3)
    before, began = sum(client.done for client in clients), time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (sum(client.done for client in clients) - before) / (time.perf_counter() - began)
    for client in clients:
        client.close()
    return rate


def measure(
    name: str, port: int, keys: Path, request: bytes, seconds: float
) -> tuple[float, float]:
    """Answers per second, and microseconds of the server's CPU for each."""
    words = [sys.executable, "-m", "tests.bench.overhead", "--serve", name]
    words += ["--port", str(port), "--keys", str(keys)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        process.stdout.readline()
        server = psutil.Process(process.pid)
        uvloop.run(load(port, request, 0.5))  # warm
        before = server.cpu_times()
        rate = uvloop.run(load(port, request, seconds))
        after = server.cpu_times()
        process.kill()
    cpu = sum(after[:2]) - sum(before[:2])
    return rate, cpu / (rate * (seconds + 0.3)) * 1e6


def rounds(count: int, seconds: float, size: int) -> Iterator[tuple[str, float, float]]:
    """The two servers by turns, with bodies of so many bytes."""
    from function.admission import keys
    from function.admission.policy import BUILT_IN

    key, line = keys.new("bench", "paid")
    head = (
        f"POST /noop HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: image/jpeg\r\nContent-Length: {size}\r\n\r\n"
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "keys"
        path.write_text(line)
        policy = BUILT_IN.read_text().replace("tokens = 50", "tokens = 1_000_000_000")
        path.with_name("policy.toml").write_text(policy)
        for _ in range(count):
            for name in ("bare", "ember"):
                with __import__("socket").socket() as probe:
                    probe.bind(("127.0.0.1", 0))
                    port = probe.getsockname()[1]
                yield name, *measure(name, port, path, head.encode() + bytes(size), seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="of bodies, in bytes")
    parser.add_argument("--serve", choices=["bare", "ember"], help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--keys", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        uvloop.run(serve(given.serve, given.port, given.keys))
        return
    for size in given.sizes:
        rates: dict[str, list[float]] = {"bare": [], "ember": []}
        costs: dict[str, list[float]] = {"bare": [], "ember": []}
        for name, rate, cost in rounds(given.rounds, given.seconds, size):
            rates[name].append(rate)
            costs[name].append(cost)
        ratio = median(rates["ember"]) / median(rates["bare"])
        told = "   ".join(
            f"{name} {median(rates[name]):7.0f} /s, {median(costs[name]):5.0f} µs" for name in rates
        )
        print(f"{size:>9,} bytes   {told}   ratio {ratio:.2f} (goal {GOAL})", flush=True)


if __name__ == "__main__":
    main()
