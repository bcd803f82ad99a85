"""`make bench-memory`: resident memory of a server over 300 swaps of mixed sizes.

Goal: after the first 100 swaps it grows by less than 5 %.
"""

from __future__ import annotations

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor

import psutil

from tests.bench.client import Connection, server, swap_request
from tests.bench.photos import photo

SWAPS = 300
STEP = 20
SIZES = (0.1, 2.0, 0.3, 8.0, 1.0, 4.0, 0.05, 12.0)  # megapixels


def main() -> int:
    """Run the swaps, four at a time; print resident memory every 20; 1 when it grew too much."""
    photos = {name: [photo(name, size) for size in SIZES] for name in ("collins", "hopper")}
    pairs = itertools.product(photos["hopper"], photos["collins"])
    requests = itertools.cycle([swap_request(source, target) for source, target in pairs])
    rss: dict[int, float] = {}
    with server() as (port, pid), ThreadPoolExecutor(4) as pool:
        process = psutil.Process(pid)
        for done in range(STEP, SWAPS + 1, STEP):
            list(pool.map(lambda request: _swap(port, request), itertools.islice(requests, STEP)))
            rss[done] = process.memory_info().rss / 1e6
    print("| swaps | resident MB |\n|---|---|")
    for done, megabytes in rss.items():
        print(f"| {done} | {megabytes:.0f} |")
    growth = rss[SWAPS] / rss[100] - 1
    print(f"\ngrowth after the first 100: {growth:+.1%} (goal < 5 %)")
    return 0 if growth < 0.05 else 1


def _swap(port: int, request: bytes) -> None:
    connection = Connection(port)
    connection.exchange(request)
    connection.close()


if __name__ == "__main__":
    sys.exit(main())
