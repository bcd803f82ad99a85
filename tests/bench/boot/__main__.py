"""`make bench-boot`: from the start of a container to the first swap.

Ember's image `cpu` against one that is built as tutorials build them (`Containerfile` beside this:
Python slim, `pip install .`, everything imported at the start, nothing compiled), and against the
bare start of the interpreter in Ember's own image. All run hardened and take turns, so that the
machine's drift hits all; the table has medians.
"""

from __future__ import annotations

import argparse
import http.client
import secrets
import socket
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress

from tests.bench.client import swap_request
from tests.bench.photos import photo
from tests.image.podman import HARDENED

GOAL = 2.0
_EVERY_S, _PATIENCE_S = 0.01, 60
_BARE = ("--entrypoint=/usr/bin/python3.11",)


def main() -> int:
    """Measure and print the table; 1 when the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.boot", description=__doc__)
    parser.add_argument("--rounds", type=int, default=11, help="starts of each")
    parser.add_argument("--image", default="ember:cpu", help="Ember's image")
    parser.add_argument("--naive", default="ember-naive", help="the other one")
    options = parser.parse_args()
    swap = swap_request(photo("hopper", 0.3), photo("collins", 0.3))
    bare: list[float] = []
    times: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    images = {"Ember's": options.image, "the naive": options.naive}
    for turn in range(options.rounds + 1):
        took = interpreter(options.image)
        found = {name: started(image, swap) for name, image in images.items()}
        if turn:  # the first fills the page cache
            bare.append(took)
            for name, both in found.items():
                times[name].append(both)
    floor = statistics.median(bare)
    print("| image | ready, s | first swap, s | ÷ bare interpreter |\n| --- | --- | --- | --- |")
    print(f"| Ember's, bare interpreter | | {floor:.2f} | 1 |")
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in times.items()
    }
    for name, (ready, swapped) in medians.items():
        print(f"| {name} | {ready:.2f} | {swapped:.2f} | {swapped / floor:.1f} |")
    pairs = zip(*times.values(), strict=True)
    ratio = statistics.median(naive[1] / ours[1] for ours, naive in pairs)
    print(f"\nNaive ÷ Ember to the first swap: {ratio:.2f}, median of {options.rounds} pairs")
    return int(ratio < GOAL)


def interpreter(image: str) -> float:
    """Seconds until the interpreter of an image has said a word."""
    began = time.perf_counter()
    words = ["podman", "run", "--rm", "--network=host", *HARDENED, *_BARE, image]
    with subprocess.Popen([*words, "-c", "print(1, flush=True)"], stdout=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"1\n"
        return time.perf_counter() - began


def started(image: str, swap: bytes) -> tuple[float, float]:
    """Seconds from the start of a container until it is ready, and until it has swapped."""
    name = f"ember-boot-{secrets.token_hex(4)}"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["--rm", f"--name={name}", "--network=host", "--user=65532", *HARDENED]
    settings = [f"--env=EMBER_PORT={port}", "--env=EMBER_LOG_LEVEL=warning"]
    settings.append("--env=EMBER_ALLOW_ANONYMOUS=true")
    began = time.perf_counter()
    run = subprocess.Popen(["podman", "run", *words, *settings, image])
    try:
        ready = _answered(port, b"GET /readyz HTTP/1.1\r\nHost: ember\r\n\r\n", run) - began
        return ready, _answered(port, swap, run) - began
    finally:
        subprocess.run(["podman", "kill", name], stdout=subprocess.DEVNULL, check=True)
        run.wait(_PATIENCE_S)


def _answered(port: int, request: bytes, run: subprocess.Popen[bytes]) -> float:
    """When the first 200 came."""
    end = time.perf_counter() + _PATIENCE_S
    while time.perf_counter() < end and run.poll() is None:
        with (
            suppress(OSError, http.client.HTTPException),
            socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S) as client,
        ):
            client.sendall(request)
            response = http.client.HTTPResponse(client)
            response.begin()
            response.read()
            if response.status == 200:
                return time.perf_counter()
        time.sleep(_EVERY_S)
    raise RuntimeError("it never answered")


if __name__ == "__main__":
    sys.exit(main())
