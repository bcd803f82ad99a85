"""`make bench-swap`: what a whole swap costs above the bare model runs, alone and under 8 clients.

Floor: the model runs that a swap makes (same inputs, straight into `session.run`), plus decoding
both photos and encoding the result with Pillow, one after the other. Ember: the whole swap over
HTTP against a real `ember serve`. Both alternate in one run, so that the machine's drift hits both.

Ceiling under load: whole swaps in a bare loop of threads, without HTTP, for every choice of runtime
threads × concurrent swaps; the best choice counts.
"""

from __future__ import annotations

import io
import itertools
import statistics
import threading
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
from PIL import Image

from function.faces.pipeline import Pipeline
from function.faces.swappers.mesh import MeshSwapper
from function.images.decode import decode
from function.images.encode import encode
from function.images.picture import Picture
from function.runtime.cpus import usable_cpus
from function.service import opening
from function.telemetry.timings import Timings
from tests.bench.client import Connection, server, swap_request, throughput
from tests.bench.photos import photo
from warmup.models import manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from function.runtime.backends.onnx import OnnxEngine

PAIRS = 31
ROUNDS = 5
ROUND_S = 4.0
CLIENTS = 8
MODELS = Path(str(files("function") / "models" / "models.toml"))


def main() -> None:
    """Measure and print both tables."""
    source, target = photo("hopper", 2), photo("collins", 2)
    with server() as (port, _):
        request = swap_request(source, target)
        alone(port, request, source, target)
        loaded(port, request, source, target)


def alone(port: int, request: bytes, source: bytes, target: bytes) -> None:
    """One client: the median swap against the floor, and where its time goes."""
    floors = {threads: Floor(source, target, threads) for threads in range(1, usable_cpus() + 1)}
    connection = Connection(port)
    times: dict[str, list[float]] = {}
    stages: dict[str, list[float]] = {}
    for turn in range(PAIRS + 2):
        for threads, floor in floors.items():
            took = timed(floor.once)
            if turn >= 2:
                times.setdefault(f"floor, {threads} runtime thread(s)", []).append(took)
        began = time.perf_counter()
        headers, _ = connection.exchange(request)
        if turn >= 2:
            times.setdefault("ember", []).append((time.perf_counter() - began) * 1e3)
            for stage, ms in server_timing(headers["server-timing"]).items():
                stages.setdefault(stage, []).append(ms)
    connection.close()
    print(f"\nOne client, two 2-megapixel photos, medians of {PAIRS} alternating runs\n")
    print("| what | ms |\n|---|---|")
    for name, values in times.items():
        print(f"| {name} | {statistics.median(values):.1f} |")
    for stage, values in stages.items():
        print(f"| – stage {stage} | {statistics.median(values):.1f} |")
    best = min(
        (name for name in times if name != "ember"), key=lambda n: statistics.median(times[n])
    )
    ratios = [ours / theirs for ours, theirs in zip(times["ember"], times[best], strict=True)]
    print(f"\nember ÷ {best}: {statistics.median(ratios):.2f} (goal ≤ 1.5)")


def loaded(port: int, request: bytes, source: bytes, target: bytes) -> None:
    """Eight clients against the best bare loop."""
    cpus = usable_cpus()
    grid = list(itertools.product(range(1, cpus + 1), sorted({1, cpus, 2 * cpus, CLIENTS})))
    pipelines = {
        threads: Pipeline(opening.load(manifest.read(MODELS), threads), MeshSwapper())
        for threads in range(1, cpus + 1)
    }
    rates: dict[tuple[int, int], list[float]] = {cell: [] for cell in grid}
    ours = []
    for _ in range(ROUNDS):
        for threads, concurrent in grid:
            swap = lambda p=pipelines[threads]: bare_swap(p, source, target)  # noqa: E731
            rates[threads, concurrent].append(bare_rate(swap, concurrent, ROUND_S / 2))
        ours.append(throughput(port, request, CLIENTS, ROUND_S))
    print(f"\n{CLIENTS} clients, swaps per second, medians of {ROUNDS} rounds\n")
    print("| runtime threads × concurrent swaps | swaps/s |\n|---|---|")
    for (threads, concurrent), values in rates.items():
        print(f"| bare loop {threads} × {concurrent} | {statistics.median(values):.1f} |")
    print(f"| ember, {CLIENTS} clients | {statistics.median(ours):.1f} |")
    best = max(rates, key=lambda cell: statistics.median(rates[cell]))
    ratios = [mine / bare for mine, bare in zip(ours, rates[best], strict=True)]
    ratio = statistics.median(ratios)
    print(f"\nember ÷ best bare loop ({best[0]} × {best[1]}): {ratio:.2f} (goal ≥ 0.85)")


class Floor:
    """The work that no swap of these two photos can do without."""

    def __init__(self, source: bytes, target: bytes, threads: int) -> None:
        cv2.setNumThreads(1)
        loaded = opening.load(manifest.read(MODELS), threads)
        self._photos = (source, target)
        self._runs: list[tuple[OnnxEngine, NDArray[np.float32]]] = []
        for engine in loaded.engines.values():
            self._record(engine)
        canvas, _ = bare_swap(Pipeline(loaded, MeshSwapper()), source, target)
        for engine in loaded.engines.values():
            del engine.run
        self._result = Image.fromarray(canvas)

    def _record(self, engine: OnnxEngine) -> None:
        run = engine.run

        def recording(batch: NDArray[np.float32]) -> list[NDArray[np.float32]]:
            self._runs.append((engine, batch.copy()))
            return run(batch)

        engine.run = recording  # type: ignore[method-assign]

    def once(self) -> None:
        """Decode both photos, run every model as often as a swap does, encode the result."""
        for data in self._photos:
            with Image.open(io.BytesIO(data)) as image:
                np.asarray(image.convert("RGB"))
        for engine, batch in self._runs:
            engine.run(batch)
        self._result.save(io.BytesIO(), "JPEG", quality=92)


def bare_swap(pipeline: Pipeline, source: bytes, target: bytes) -> tuple[NDArray[np.uint8], bytes]:
    """A whole swap in the calling thread, without service or HTTP."""
    trace = Timings()
    mine, theirs = decode(source), decode(target)
    person, _ = pipeline.portrait(mine, trace)
    assert person is not None
    faces = pipeline.find(theirs, trace, identify=True)
    canvas, warnings = pipeline.swap(theirs, faces, {"": person}, trace)
    pipeline.judge(canvas, faces, warnings, {"": person}, trace)
    return canvas, encode(Picture(canvas), "jpeg")


def bare_rate(work: Callable[[], object], concurrent: int, seconds: float) -> float:
    """Runs per second of `work` in `concurrent` threads."""
    done = [0] * concurrent
    end = time.perf_counter() + seconds

    def loop(number: int) -> None:
        while time.perf_counter() < end:
            work()
            done[number] += 1

    began = time.perf_counter()
    threads = [threading.Thread(target=loop, args=(number,)) for number in range(concurrent)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - began)


def timed(work: Callable[[], object]) -> float:
    """Milliseconds that one call takes."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def server_timing(header: str) -> dict[str, float]:
    """Stage → milliseconds from a Server-Timing header."""
    entries = (entry.strip().split(";dur=") for entry in header.split(","))
    return {name: float(ms) for name, ms in entries}


if __name__ == "__main__":
    main()
