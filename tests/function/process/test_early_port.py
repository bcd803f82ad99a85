"""The first answers of a process, and the hand-over to the real server."""

from __future__ import annotations

import asyncio
import socket

import pytest

from function.process.early_port import EarlyPort

writers = []


class Real(asyncio.Protocol):
    """Answers everything that it gets by its length, and remembers it."""

    def __init__(self):
        self.received = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received += data
        self.transport.write(f"real {len(self.received)}\n".encode())


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Runs a coroutine function with an early server, its port and the real protocols so far."""

    def runs(body):
        async def main():
            writers.clear()
            with socket.create_server(("127.0.0.1", 0)) as listening:
                early, made = EarlyPort(), []

                def real():
                    made.append(Real())
                    return made[-1]

                await early.listen([listening])
                try:
                    await body(listening.getsockname()[1], lambda: early.hand_over(real), made)
                finally:
                    early.hand_over(real)
                    for writer in writers:
                        writer.close()
                    await asyncio.sleep(0.02)

        factory = None
        if request.param == "uvloop":
            factory = pytest.importorskip("uvloop").new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(main(), 20))

    return runs


async def ask(port, *pieces):
    """Send pieces one by one; (reader, writer)."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writers.append(writer)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.02)
    return reader, writer


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        (b"GET", b"/healthz", b'{"status": "alive", "reason": null}'),
        (b"GET", b"/healthz?x=1", b'{"status": "alive", "reason": null}'),
        (b"HEAD", b"/healthz", b""),
    ],
)
def test_the_process_is_alive_before_there_is_a_server(run, method, target, body):
    async def main(port, hand_over, made):
        head = method + b" " + target + b" HTTP/1.1\r\n"
        reader, _ = await ask(port, head[:7], head[7:], b"Host: x\r\n", b"\r\n")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert answer.partition(b"\r\n\r\n")[2] == body
        assert b"Content-Length: 35\r\n" in answer
        hand_over()
        assert made == []

    run(main)


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /healthz HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        b"POST /v1/swap HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
        b"GET /healthzz HTTP/1.1\r\n\r\n",
        b"no HTTP at all\r\n\r\n",
        b"x" * 70_000,
    ],
)
def test_a_request_for_anything_else_waits_for_the_server_and_loses_no_byte(run, request_):
    async def main(port, hand_over, made):
        reader, writer = await ask(port, request_)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.readline(), 0.1)
        hand_over()
        line = b""
        while line != f"real {len(request_)}\n".encode():
            line = await reader.readline()
        assert made[0].received == request_
        writer.write(b"more")
        assert await reader.readline() == f"real {len(request_) + 4}\n".encode()

    run(main)


def test_a_connection_that_is_silent_or_half_way_goes_to_the_server(run):
    async def main(port, hand_over, made):
        silent, writer = await ask(port)
        half, other = await ask(port, b"GET /healthz HT")
        hand_over()
        writer.write(b"hello")
        other.write(b"TP/1.1\r\n\r\n")
        assert await silent.readline() == b"real 5\n"
        while await half.readline() != b"real 25\n":
            pass
        assert {real.received for real in made} == {b"hello", b"GET /healthz HTTP/1.1\r\n\r\n"}

    run(main)


def test_a_client_that_left_is_forgotten(run):
    async def main(port, hand_over, made):
        _, writer = await ask(port, b"GET /readyz HTTP/1.1\r\n")
        writer.close()
        await writer.wait_closed()
        await asyncio.sleep(0.05)
        hand_over()
        assert made == []

    run(main)


def test_the_early_server_accepts_nothing_after_the_hand_over(run):
    async def main(port, hand_over, made):
        hand_over()
        reader, _ = await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n")
        with pytest.raises(TimeoutError):  # the socket still listens, for the real server
            await asyncio.wait_for(reader.read(1), 0.2)

    run(main)
