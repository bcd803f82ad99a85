"""The ceiling: whole swaps in bare loops of threads, without HTTP, in a process of its own.

Reads lines of `THREADS CONCURRENT BATCH SECONDS` and answers each with the numbers of a `Loop`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
import time
from dataclasses import astuple, dataclass
from itertools import product
from typing import TYPE_CHECKING

from function.runtime.cpus import usable_cpus

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from tests.bench.cold.swapping import Swap

BATCH = 8


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One way to loop: threads of each inference, swaps or batches at once, requests of a batch."""

    threads: int
    concurrent: int
    batch: int

    def __str__(self) -> str:
        return f"{self.threads} × {self.concurrent} × {self.batch}"


@dataclass(frozen=True, slots=True)
class Loop:
    """What came of it.

    Attributes:
        rate: swaps per second.
        took: the median seconds of a call.
        cpu: seconds of CPU for each swap.
    """

    rate: float
    took: float
    cpu: float


def grid() -> list[Cell]:
    """Every way that is tried, the lone swap first."""
    cpus = usable_cpus()
    singles = product(sorted({1, cpus}), sorted({1, cpus, 2 * cpus}), (1,))
    return [Cell(*cell) for cell in (*singles, *product(sorted({1, cpus}), {1, cpus}, (BATCH,)))]


class Ceiling:
    """The process that loops.

    Args:
        environ: its environment.
    """

    def __init__(self, environ: dict[str, str]) -> None:
        self._environ = environ

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.load.ceiling"],
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._process.stdin.close()
        self._process.wait(30)

    def loop(self, cell: Cell, seconds: float) -> Loop:
        """Loop for some seconds."""
        print(
            cell.threads, cell.concurrent, cell.batch, seconds, file=self._process.stdin, flush=True
        )
        if not (line := self._process.stdout.readline()):
            raise RuntimeError("the bare loop has ended; its error is above")
        return Loop(*map(float, line.split()))


def _loop(swap: Swap, cell: Cell, pair: tuple[bytes, bytes], seconds: float) -> Loop:
    """One measurement."""
    done: list[list[float]] = [[] for _ in range(cell.concurrent)]
    end = time.perf_counter() + seconds

    def work(own: list[float]) -> None:
        while (began := time.perf_counter()) < end:
            if cell.batch == 1:
                swap(*pair)
            else:
                swap.many([pair] * cell.batch)
            own.append(time.perf_counter() - began)

    threads = [threading.Thread(target=work, args=(own,)) for own in done]
    busy = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each thread for itself, so that those that end early do not count as idle.
    rate = sum(len(own) * cell.batch / sum(own) for own in done)
    took = [took for own in done for took in own]
    cpu = (time.process_time() - busy) / (len(took) * cell.batch)
    return Loop(rate, statistics.median(took), cpu)


def main() -> None:
    """Loop as told, until the input ends."""
    import cv2

    from function.service import opening
    from function.service.service import sample
    from tests.bench.cold.swapping import MANIFEST, STORE, Swap
    from warmup.models.manifest import read

    cv2.setNumThreads(1)
    pair = sample("hopper"), sample("collins")
    swaps = {
        threads: Swap(opening.load(read(MANIFEST), threads, STORE))
        for threads in {1, usable_cpus()}
    }
    for swap in swaps.values():
        swap.many([pair])
    for line in sys.stdin:
        *numbers, seconds = line.split()
        cell = Cell(*map(int, numbers))
        print(*astuple(_loop(swaps[cell.threads], cell, pair, float(seconds))), flush=True)


if __name__ == "__main__":
    main()
