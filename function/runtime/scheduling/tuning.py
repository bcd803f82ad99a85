"""How a CPU is best used for one model: threads of an inference × batches at once × their size.

One thread for each inference and several at once is nearly always best; but a model whose weights
do not fit into the caches may do better with one large batch on all CPUs, and the best size differs
from machine to machine. So it is measured, shortly, once for each model and kind of machine: what
was found is kept in the store. Only a model that takes batches gives anything to choose.

While a replica starts, other models load on the same CPUs. So what decides is how long the threads
have computed, whatever computed at the same time; only where all CPUs for one batch seem to win,
the clock has to agree.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from function.runtime.backends.onnx import VERSION
from function.runtime.backends.optimised import cpu_features
from warmup.models.store import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from function.runtime.engine import Engine

_FORMAT = 3
_BUDGET_S, _BUDGET_RUNS = 0.2, 20  # of computing: so long, or as long as so many first runs
_PATIENCE = 3  # budgets that may pass on the clock, as others compute as well
_ROUNDS = 2, 3  # of each choice, at least and at most; the fastest counts
_GAIN = 1.05  # what a larger size has to bring, as everyone in a batch waits for all of it
_WORSE = 0.9  # a rate this much below the best one so far is past the peak
_BETTER = 1.1  # by how much all CPUs for one batch have to win, as others have to wait for it


@dataclass(frozen=True, slots=True)
class CpuTuning:
    """What is best for one model.

    Attributes:
        threads: of one inference.
        runs: how many batches at once.
        size: the most items of a batch.
    """

    threads: int
    runs: int
    size: int


@dataclass(frozen=True, slots=True)
class TuningFile:
    """The file that keeps the plan of one model, whether it is there or not."""

    path: Path

    @classmethod
    def of(cls, store: Path, sha256: str, cpus: int, sizes: Sequence[int]) -> TuningFile:
        """The file for the model with this digest, this runtime, this machine and these sizes."""
        facts = f"{_FORMAT} {VERSION} {platform.machine()} {cpu_features()} {cpus} {sizes}"
        kind = hashlib.sha256(facts.encode()).hexdigest()[:16]
        return cls(store / "tuned" / f"{sha256}-{kind}.json")

    def load(self) -> CpuTuning | None:
        """The plan; None when there is none, or none that can be read."""
        try:
            plan = CpuTuning(**json.loads(self.path.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        numbers = asdict(plan).values()
        return plan if all(type(number) is int and number > 0 for number in numbers) else None

    def save(self, plan: CpuTuning) -> None:
        """Keep a plan, if the disk allows it; a reader sees all of it or nothing."""
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, json.dumps(asdict(plan)))


def measure(
    engine: Engine,
    wide: Callable[[], Engine],
    items: Sequence[tuple[int, ...]],
    sizes: Sequence[int],
    *,
    cpus: int,
    clock: Callable[[], float] = time.perf_counter,
    busy: Callable[[], float] = time.thread_time,
) -> tuple[CpuTuning, Engine]:
    """Find the best plan by running batches of zeros.

    Args:
        engine: runs each inference on one thread.
        wide: opens the same model with a thread for each CPU.
        items: the shape of one item, for each input.
        sizes: that a batch may have, rising.
        cpus: how many there are.
        clock: seconds.
        busy: seconds that the calling thread has computed.

    Returns:
        The plan, and the engine that it needs.
    """
    trial = _Trial(items, clock, busy)
    trial.start(engine)
    rate, size = trial.best(engine, cpus, sizes)
    best, chosen = CpuTuning(1, cpus, size), engine
    if cpus > 1 and not trial.over:
        other = wide()
        wide_rate, wide_size = trial.best(other, 1, [each for each in sizes if each >= size])
        wider = CpuTuning(cpus, 1, wide_size)
        if wide_rate > rate * _BETTER and trial.gain((other, wider), (engine, best)) > _BETTER:
            best, chosen = wider, other
    return best, chosen


class _Trial:
    """Runs batches of zeros.

    Args:
        items: the shape of one item, for each input.
        clock: seconds.
        busy: seconds that the calling thread has computed.
    """

    def __init__(
        self,
        items: Sequence[tuple[int, ...]],
        clock: Callable[[], float],
        busy: Callable[[], float],
    ) -> None:
        self._items, self._clock, self._busy = items, clock, busy
        self._budget = self._spent = self._end = 0.0

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self._spent >= self._budget or self._clock() >= self._end

    def start(self, engine: Engine) -> None:
        """Run one item, for the first time and so not to be counted; the time runs from now."""
        self._budget = max(_BUDGET_S, _BUDGET_RUNS * self._round(engine, 1, 1))
        self._spent, self._end = 0.0, self._clock() + _PATIENCE * self._budget

    def best(self, engine: Engine, runs: int, sizes: Sequence[int]) -> tuple[float, int]:
        """The most items in a second of computing, and the size of the batches that gives it.

        Sizes are tried until one is clearly worse than a smaller one.
        """
        best = 0.0, sizes[0]
        for size in sizes:
            fastest, before = math.inf, self._spent
            for number in range(1, _ROUNDS[1] + 1):
                fastest = min(fastest, self._round(engine, runs, size))
                spent = self._spent - before
                if number >= _ROUNDS[0] and spent > self._budget / (2 * len(sizes)):
                    break
            rate = size * runs / fastest
            if rate > best[0] * _GAIN:
                best = rate, size
            if rate < best[0] * _WORSE or self.over:
                break
        return best

    def gain(self, one: tuple[Engine, CpuTuning], other: tuple[Engine, CpuTuning]) -> float:
        """How many times as many items one way gives on the clock as another; by turns."""
        rates = [0.0, 0.0]
        for _ in range(_ROUNDS[0]):
            for way, (engine, plan) in enumerate((one, other)):
                began = self._clock()
                self._round(engine, plan.runs, plan.size)
                rate = plan.runs * plan.size / (self._clock() - began)
                rates[way] = max(rates[way], rate)
        return rates[0] / rates[1]

    def _round(self, engine: Engine, runs: int, size: int) -> float:
        """For how many seconds the slowest thread computes when some batches run at once."""
        inputs = [np.zeros((size, *item), np.float32) for item in self._items]

        def run(_: int) -> float:
            began = self._busy()
            engine.run(*inputs)
            return self._busy() - began

        with ThreadPoolExecutor(runs) as pool:
            took = max(pool.map(run, range(runs)))
        self._spent += took
        return took
