"""`make bench-trust`: what the gate, the marks and the audit cost a swap, and a start.

Two real servers take turns: one with all of it off, one as it is by default. A pair is a swap of
each, one after the other; what counts is the median of the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack

from tests.bench.client import Connection, server, swap_request, throughput
from tests.bench.photos import photo
from tests.bench.swap import server_timing

OFF = {"EMBER_GATE": "off", "EMBER_WATERMARK": "off", "EMBER_AUDIT": "off"}
SIZES = (0.25, 2.0, 12.0)
"""Of both photos, in megapixels."""
STAGES = ("gate", "mark", "sign")


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="bench-trust")
    parser.add_argument("--pairs", type=int, default=31)
    parser.add_argument("--starts", type=int, default=7)
    options = parser.parse_args()
    with ExitStack() as open_:
        ports = [open_.enter_context(server(environ))[0] for environ in (OFF, {})]
        alone(ports, options.pairs)
        loaded(ports)
    starts(options.starts)


def alone(ports: list[int], pairs: int) -> None:
    """One client, for each size of photos."""
    print(f"\nOne client, medians of {pairs} pairs\n")
    print("| photos | off ms | on ms | ratio | gate ms | mark ms | sign ms |")
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        request = swap_request(photo("hopper", size), photo("collins", size))
        connections = [Connection(port) for port in ports]
        times: list[list[float]] = [[], []]
        stages: dict[str, list[float]] = {stage: [] for stage in STAGES}
        for turn in range(pairs + 2):
            for place in (0, 1) if turn % 2 else (1, 0):
                began = time.perf_counter()
                headers, _ = connections[place].exchange(request)
                if turn >= 2:
                    times[place].append((time.perf_counter() - began) * 1e3)
                    found = server_timing(headers["server-timing"])
                    for stage in STAGES if place else ():
                        stages[stage].append(found.get(stage, 0.0))
        for connection in connections:
            connection.close()
        off, on = (statistics.median(each) for each in times)
        ratio = statistics.median(b / a for a, b in zip(*times, strict=True))
        own = " | ".join(f"{statistics.median(stages[stage]):.1f}" for stage in STAGES)
        print(f"| {size:g} MP | {off:.1f} | {on:.1f} | {ratio:.3f} | {own} |")


def loaded(ports: list[int], clients: int = 8, rounds: int = 7, seconds: float = 4.0) -> None:
    """Eight clients that each send the next request at once."""
    request = swap_request(photo("hopper", 2), photo("collins", 2))
    rates: list[list[float]] = [[], []]
    for turn in range(rounds):
        for place in (0, 1) if turn % 2 else (1, 0):
            rates[place].append(throughput(ports[place], request, clients, seconds))
    ratio = statistics.median(b / a for a, b in zip(*rates, strict=True))
    off, on = (statistics.median(each) for each in rates)
    print(f"\n{clients} clients, 2 MP: {off:.2f} swaps/s off, {on:.2f} on, ratio {ratio:.3f}")


def starts(count: int) -> None:
    """From the start of the process until ready, with a store that is filled."""
    times: list[list[float]] = [[], []]
    for turn in range(count + 1):
        for place in (0, 1) if turn % 2 else (1, 0):
            began = time.perf_counter()
            with server((OFF, {})[place]):
                took = time.perf_counter() - began
            if turn:
                times[place].append(took)
    ratio = statistics.median(b / a for a, b in zip(*times, strict=True))
    off, on = (statistics.median(each) * 1e3 for each in times)
    print(f"\nUntil ready, {count} pairs: {off:.0f} ms off, {on:.0f} ms on, ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
