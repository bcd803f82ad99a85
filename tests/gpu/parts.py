"""What the check looks at, each part by itself: it gives figures, or raises."""

from __future__ import annotations

import asyncio
import statistics
import threading
import time

import numpy as np

from function.images.decode import decode
from function.runtime.scheduling.batcher import Batcher
from function.runtime.scheduling.buckets import Buckets
from function.runtime.scheduling.permits import ComputePermits
from function.telemetry.timings import Timings
from tests.gpu import killed
from tests.gpu.check import Part

SIZES = (1, 2, 4, 8)
PRECISIONS = ("fp32", "fp16", "int8")


def backends(world) -> dict:
    """Each backend that is installed runs a model here."""
    found = world.backends()
    wrong = [f"{name}: {each['failed']}" for name, each in found.items() if "failed" in each]
    expect(not wrong, "; ".join(wrong))
    expect(any("version" in each for each in found.values()), "nothing for a GPU is installed")
    return found


def numbers(world) -> dict:
    """The GPU gives what the CPU gives, for each batch size, in any order."""
    right, found = world.cpu(), {}
    for name, engine in world.engines().items():
        apart = 0.0
        for size in (*SIZES, 3, 1, 8):
            batch = world.batch(size)
            apart = max(apart, worst(engine.run(batch), right.run(batch)))
        found[name] = {"apart": round(apart, 6)}
        expect(apart < 1e-2, f"{name} is {apart:.4f} of the largest value away from the CPU")
    return found


def plans(world) -> dict:
    """Plans are built, in each precision and of embedded models, and give what the CPU gives."""
    found = {}
    for precision in PRECISIONS:
        sidecar = world.build(precision)
        found[precision] = {
            "build_s": sidecar.seconds,
            "megabytes": round(sidecar.size / 1e6, 1),
            "times_onnx_runtime": sidecar.speedup and round(sidecar.speedup, 2),
        }
    return found | world.build_embedded()


def batches(world) -> dict:
    """What an item costs in batches of each size, in milliseconds."""
    return {
        name: {
            f"{size} at once": round(1e3 * seconds(engine, world.batch(size)) / size, 3)
            for size in SIZES
        }
        for name, engine in world.engines().items()
    }


def first_request(world) -> dict:
    """The first swap after ready costs what later ones cost."""

    async def measure() -> tuple[list[float], dict]:
        async with world.service() as service:
            took = []
            for _ in range(world.repeats):
                began = time.perf_counter()
                await world.swap(service)
                took.append(time.perf_counter() - began)
            return took, service.engines.providers

    (first, *rest), providers = asyncio.run(measure())
    steady = statistics.median(rest)
    if world.judges:
        expect(
            first < 3 * steady, f"the first took {first / steady:.1f} times as long as later ones"
        )
    return {
        "providers": providers,
        "first_ms": round(first * 1e3, 1),
        "steady_ms": round(steady * 1e3, 1),
        "first_over_steady": round(first / steady, 2),
    }


def load(world) -> dict:
    """Many callers at once are all served, and sooner than one after the other."""

    async def measure() -> tuple[list[float], float, float]:
        took = []

        async def caller(service, swaps) -> None:
            for _ in range(swaps):
                began = time.perf_counter()
                await world.swap(service)
                took.append(time.perf_counter() - began)

        async with world.service() as service:
            await caller(service, world.swaps)
            alone = statistics.median(took)
            took.clear()
            began = time.perf_counter()
            await asyncio.gather(*(caller(service, world.swaps) for _ in range(world.callers)))
            return took, alone, time.perf_counter() - began

    took, alone, whole = asyncio.run(measure())
    took.sort()
    return {
        "callers": world.callers,
        "requests": len(took),
        "failed": 0,
        "swaps_a_second": round(len(took) / whole, 1),
        "times_one_caller": round(len(took) / whole * alone, 2),
        "p50_ms": round(took[len(took) // 2] * 1e3, 1),
        "p95_ms": round(took[len(took) * 95 // 100] * 1e3, 1),
    }


def out_of_memory(world) -> dict:
    """Where memory of the GPU runs out, batches become smaller, and results stay right."""
    crowd = world.crowd()
    batcher = Batcher(
        "check", crowd.engine, ComputePermits(1), runs=1, buckets=Buckets(crowd.sizes, pads=True)
    )
    batch = crowd.batch(crowd.sizes[-1])
    crowd.engine.run(batch[:1])
    tries = 0
    with crowd.full():
        while True:
            tries += 1
            try:
                few = batcher.run(batch)
                break
            except Exception:
                # Each halves the size; an error of another kind, or at one item, is not a shortage.
                if tries > len(crowd.sizes):
                    raise
    cap = batcher.cap
    expect(cap < crowd.sizes[-1], f"a batch of {cap} had room: nothing ran out")
    crowd.right(few, batch)
    crowd.right(crowd.engine.run(batch[:cap]), batch[:cap])
    return {"tries": tries, "largest_before": crowd.sizes[-1], "largest_then": cap}


def killed_context(world) -> dict:
    """When the context is killed the replica answers 503 and ends with 69; the next one serves."""
    return killed.proof(world)


def lost_to_the_process(world) -> dict:
    """After a kernel has killed the context no engine of the process is run again."""
    return world.lost()


def swap_over(world) -> dict:
    """A service on CUDA takes over plans that come under load; no request fails."""

    async def measure() -> dict:
        took, over = [], asyncio.Event()

        async def caller(service) -> None:
            while not over.is_set():
                began = time.perf_counter()
                await world.swap(service)
                took.append(time.perf_counter() - began)

        async with world.service_without_plans() as service:
            before = sorted(set(service.engines.providers.values()))
            callers = [asyncio.create_task(caller(service)) for _ in range(world.callers)]
            began = time.perf_counter()
            world.share_plans()
            await service.upgrade()
            upgraded, served = time.perf_counter() - began, len(took)
            while len(took) < served + 8:
                await asyncio.sleep(0.01)
            over.set()
            await asyncio.gather(*callers)
            after = sorted(set(service.engines.providers.values()))
        expect("TensorRT" in after, f"it still runs on {after}")
        return {
            "before": before,
            "after": after,
            "requests": len(took),
            "failed": 0,
            "upgrade_s": round(upgraded, 1),
            "slowest_over_median": round(max(took) / statistics.median(took), 1),
        }

    return asyncio.run(measure())


def cuda_graphs(world) -> dict:
    """CUDA graphs give the same, from whatever thread they are asked, and what they save."""
    plain, graphs = world.graphs()
    found = {}
    for size in SIZES:
        batch, apart = world.batch(size), []
        right = plain.run(batch)

        def ask(batch=batch, right=right, apart=apart) -> None:
            apart.append(worst(graphs.run(batch), right))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect(len(apart) == 4, "a run with graphs has failed in a thread")
        expect(max(apart) < 1e-3, f"{max(apart):.4f} of the largest value away from without graphs")
        found[f"{size} at once"] = {
            "plain_ms": round(1e3 * seconds(plain, batch), 3),
            "graph_ms": round(1e3 * seconds(graphs, batch), 3),
        }
    return found


def resident(world) -> dict:
    """Faces that stay on the GPU are those that the CPU makes, within 1/255; what that saves."""
    made, found = {}, {}

    async def measure(manifest) -> tuple[bytes, float]:
        async with world.serving(manifest) as service:
            took = []
            for _ in range(world.repeats):
                began = time.perf_counter()
                result = await service.swap(world.lossless, Timings())
                took.append(time.perf_counter() - began)
            return result.image, statistics.median(took)

    for name, manifest in world.swappers().items():
        image, took = asyncio.run(measure(manifest))
        made[name] = decode(image, name="result").pixels.astype(int)
        found[name] = {"median_ms": round(took * 1e3, 1)}
    levels = int(np.abs(made["crops"] - made["cutouts"]).max())
    expect(levels <= 1, f"pixels differ by {levels} of 255")
    changed = int(np.abs(made["crops"] - world.before()).max())
    expect(changed > 50, "nothing was swapped")
    return found | {"levels_apart": levels}


PARTS = (
    Part(backends, 25),
    Part(plans, 105),
    Part(numbers, 10),
    Part(batches, 15),
    Part(first_request, 20),
    Part(load, 15),
    Part(out_of_memory, 15, on_standin=True),
    Part(killed_context, 30),
    Part(lost_to_the_process, 10, on_standin=True),
    Part(swap_over, 20),
    Part(cuda_graphs, 10),
    Part(resident, 15),
)
"""In this order: what the others need, comes first. Together less than five minutes."""


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def worst(found: list, right: list) -> float:
    """The largest difference, as a part of the largest value."""
    return max(
        float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(found, right, strict=True)
    )


def seconds(engine, batch) -> float:
    took = []
    for number in range(13):
        began = time.perf_counter()
        engine.run(batch)
        if number >= 3:
            took.append(time.perf_counter() - began)
    return statistics.median(took)
