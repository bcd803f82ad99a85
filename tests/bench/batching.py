"""`make bench-batching`: what batching gains, and what its window costs and gains.

One stage on the CPU, shared by a closed loop of clients, each a thread that asks for one item at a
time. The graph reads all of its weights for every batch, so that a batch of eight costs little more
than one item. All ways alternate in one run, so that the machine's drift hits all.

The ceiling is a bare loop of full batches, one thread each and several at once or one batch on all
CPUs, whichever is better. It is measured right before each way, and the ratio is that of the two.
"""

from __future__ import annotations

import itertools
import math
import statistics
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from function import request_context
from function.request_context import Lane, RequestContext
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.cpus import usable_cpus
from function.runtime.scheduling.batcher import Batcher
from function.runtime.scheduling.buckets import Buckets
from function.runtime.scheduling.observer import Unobserved
from function.runtime.scheduling.permits import ComputePermits
from tests.graphs import dense, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTHS = (1024, 4096, 4096, 1024)
SIZES = (1, 2, 4, 8, 16)
CLIENTS = (1, 8, 32)
WINDOWS_MS = (0, 5, 25)
ROUNDS = 5
ROUND_S = 1.0


class Sizes(Unobserved):
    """Counts the sizes of batches."""

    def __init__(self) -> None:
        self.items: Counter[int] = Counter()

    def batched(self, stage: str, items: int) -> None:
        self.items[items] += 1

    @property
    def mean(self) -> float:
        return sum(size * n for size, n in self.items.items()) / max(1, self.items.total())


@dataclass
class Way:
    """One way to share the engine, and what came of it, by number of clients."""

    name: str
    batcher: Batcher
    permits: ComputePermits
    rates: dict[int, list[float]] = field(default_factory=dict)
    times: dict[int, list[float]] = field(default_factory=dict)
    ceilings: dict[int, list[float]] = field(default_factory=dict)
    sizes: Sizes = field(default_factory=Sizes)


def main() -> None:
    """Measure and print."""
    cpus = usable_cpus()
    with TemporaryDirectory() as folder:
        path = dense(Path(folder) / "dense.onnx", *WIDTHS)
        narrow, wide = OnnxEngine(path, 1), OnnxEngine(path, cpus)
        ways = [
            way(f"batching off, {cpus} at once", narrow, cpus, (1,), 0),
            *(way(f"window {ms} ms, {cpus} at once", narrow, cpus, SIZES, ms) for ms in WINDOWS_MS),
            # With one run, no batch ever waits for its window.
            way(f"one at once, on {cpus} threads", wide, 1, SIZES, 0),
        ]
        for _ in range(ROUNDS):
            for each, clients in itertools.product(ways, CLIENTS):
                each.ceilings.setdefault(clients, []).append(
                    max(bare(narrow, cpus), bare(wide, 1)) if clients > 1 else math.nan
                )
                loop(each, clients)
        report(ways)
        urgent(ways)


def way(name: str, engine: OnnxEngine, runs: int, sizes: tuple[int, ...], window_ms: float) -> Way:
    """A way to share an engine."""
    permits = ComputePermits(usable_cpus())
    stage = Batcher(
        "dense", engine, permits, runs=runs, buckets=Buckets(sizes), window=window_ms / 1e3
    )
    return Way(name, stage, permits)


def report(ways: list[Way]) -> None:
    """Print the table of rates and times."""
    heads = [f"{n} clients: items/s | ÷ ceiling | p50, p99 ms" for n in CLIENTS[1:]]
    print(f"\n| way | alone: p50 ms | {' | '.join(heads)} | mean batch of {CLIENTS[-1]} |")
    print("|---" * (3 + 3 * len(heads)) + "|")
    for each in ways:
        cells = [f"{statistics.median(each.times[1]) * 1e3:.2f}"]
        for clients in CLIENTS[1:]:
            rates, ceilings = each.rates[clients], each.ceilings[clients]
            ratio = statistics.median(r / c for r, c in zip(rates, ceilings, strict=True))
            p50, p99 = np.percentile(each.times[clients], [50, 99]) * 1e3
            cells += [f"{statistics.median(rates):.0f}", f"{ratio:.2f}", f"{p50:.1f}, {p99:.1f}"]
        print(f"| {each.name} | {' | '.join(cells)} | {each.sizes.mean:.1f} |")


def urgent(ways: list[Way]) -> None:
    """How long interactive items take, alone and beside 32 clients of the bulk lane."""
    beside = f"beside {CLIENTS[-1]} bulk clients: p50, p99 ms"
    print(f"\n| way | interactive alone: p50, p99 ms | {beside} |\n|---|---|---|")
    for each in ways:
        told = []
        for crowd in (0, CLIENTS[-1]):
            with clients_of(each, Lane.BULK, crowd):
                took = [ask(each, Lane.INTERACTIVE) for _ in range(200)]
            p50, p99 = np.percentile(took, [50, 99]) * 1e3
            told.append(f"{p50:.1f}, {p99:.1f}")
        print(f"| {each.name} | {' | '.join(told)} |")


def ask(each: Way, lane: Lane) -> float:
    """Seconds that one item takes."""
    token = request_context.current.set(RequestContext(lane))
    began = time.perf_counter()
    with each.permits.held():
        each.batcher.run(ITEM)
    request_context.current.reset(token)
    return time.perf_counter() - began


@contextmanager
def clients_of(each: Way, lane: Lane, count: int) -> Iterator[list[float]]:
    """So many clients are at work during the body; gives the seconds of each of their items."""
    stop, took = threading.Event(), []

    def client() -> None:
        while not stop.is_set():
            took.append(ask(each, lane))

    threads = [threading.Thread(target=client) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield took
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def loop(each: Way, clients: int) -> None:
    """One round of a closed loop."""
    each.permits.observer = each.sizes if clients == CLIENTS[-1] else Unobserved()
    with clients_of(each, Lane.STANDARD, clients) as took:
        before = len(took)
        time.sleep(ROUND_S)
        done = took[before:]
    each.rates.setdefault(clients, []).append(len(done) / ROUND_S)
    each.times.setdefault(clients, []).extend(done)


def bare(engine: OnnxEngine, concurrent: int) -> float:
    """Items per second of full batches, in `concurrent` threads, with nothing around them."""
    batch, done = rows(SIZES[-1], WIDTHS[0]), [0] * concurrent
    end = time.perf_counter() + ROUND_S / 2

    def client(number: int) -> None:
        while time.perf_counter() < end:
            engine.run(batch)
            done[number] += len(batch)

    began = time.perf_counter()
    threads = [threading.Thread(target=client, args=(n,)) for n in range(concurrent)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - began)


ITEM = rows(1, WIDTHS[0])

if __name__ == "__main__":
    main()
