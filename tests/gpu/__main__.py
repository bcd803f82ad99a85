"""`make gpu-check`: everything that only a GPU can show, in under six minutes, as a JSON report.

It builds plans, compares numbers with the CPU, measures the first request, batches and the change
from CUDA to plans under load. What is not installed is skipped by name. `--rehearse` goes through
all of it on the CPU, to see that the script itself works: its numbers say nothing about a GPU.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from function import __version__
from function.exits import Exit
from tests.gpu.worlds import Missing, Real, Rehearsal
from warmup.failures import WarmupError

SIZES = (1, 2, 4, 8)
LIMIT_S = 330


def main() -> int:
    parser = argparse.ArgumentParser(prog="make gpu-check")
    parser.add_argument("--report", type=Path, default=Path("build/gpu-check.json"))
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        try:
            world = (Rehearsal if options.rehearse else Real)(Path(folder))
        except WarmupError as error:
            print(f"gpu-check: nothing was checked: {error}", file=sys.stderr)
            return Exit.UNAVAILABLE
        report = check(world)
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(json.dumps(report, indent=2) + "\n")
    failed = [name for name, step in report["steps"].items() if step["state"] == "failed"]
    print(f"gpu-check: {options.report}: {len(failed)} failed {failed or ''}")
    return 1 if failed else 0


def check(world) -> dict:
    """Run every step for which there is time; none ends the others."""
    began, steps = time.monotonic(), {}
    for step in (numbers, plans, batches, first_request, swap_over):
        name = step.__name__
        if time.monotonic() - began > LIMIT_S:
            steps[name] = {"state": "skipped", "reason": f"{LIMIT_S} s are over"}
            continue
        at = time.monotonic()
        try:
            steps[name] = {"state": "ok", **step(world)}
        except Missing as missing:
            steps[name] = {"state": "skipped", "reason": str(missing)}
        except Exception as error:
            steps[name] = {"state": "failed", "reason": f"{type(error).__name__}: {error}"}
        steps[name]["seconds"] = round(time.monotonic() - at, 1)
        print(f"{name:14} {json.dumps(steps[name])[:300]}", flush=True)
    return {
        "ember": __version__,
        "python": platform.python_version(),
        "rehearsal": isinstance(world, Rehearsal),
        "gpu": world.facts(),
        "steps": steps,
        "seconds": round(time.monotonic() - began, 1),
    }


def numbers(world) -> dict:
    """ONNX Runtime on the GPU gives what it gives on the CPU, for every size, in any order."""
    right, found = world.cpu(), {}
    for name, engine in world.onnx().items():
        apart = 0.0
        for size in (*SIZES, 3, 1, 8):
            batch = world.batch(size)
            apart = max(apart, worst(engine.run(batch), right.run(batch)))
        expect(apart < 1e-2, f"{name} is {apart:.4f} of the largest value away from the CPU")
        found[name] = {"provider": engine.provider, "apart": round(apart, 6)}
    return found


def plans(world) -> dict:
    """Plans are built and give what the CPU gives; how much faster they are."""
    found = {}
    for precision in ("fp32", "fp16", "int8"):
        sidecar = world.build(precision)
        found[precision] = {
            "build_s": sidecar.seconds,
            "megabytes": round(sidecar.size / 1e6, 1),
            "times_onnx_runtime": sidecar.speedup and round(sidecar.speedup, 2),
        }
    return found


def batches(world) -> dict:
    """Milliseconds for each item, by size."""
    engines = {**world.onnx(), "tensorrt": world.plan("fp32")}
    return {
        name: {
            str(size): round(1e3 * seconds(engine, world.batch(size)) / size, 3) for size in SIZES
        }
        for name, engine in engines.items()
    }


def first_request(world) -> dict:
    """The first swap after `ready` costs what later ones cost."""

    async def measure() -> list[float]:
        async with world.service() as service:
            took = []
            for _ in range(12):
                began = time.perf_counter()
                await world.swap(service)
                took.append(time.perf_counter() - began)
            return took

    first, *rest = asyncio.run(measure())
    steady = statistics.median(rest)
    return {
        "first_ms": round(first * 1e3, 1),
        "steady_ms": round(steady * 1e3, 1),
        "ratio": round(first / steady, 2),
    }


def swap_over(world) -> dict:
    """A service without plans gets them under load; no request fails."""

    async def measure() -> dict:
        took, over = [], asyncio.Event()

        async def client(service) -> None:
            while not over.is_set():
                began = time.perf_counter()
                await world.swap(service)
                took.append(time.perf_counter() - began)

        async with world.service_without_plans() as service:
            before = sorted(set(service.engines.providers.values()))
            clients = [asyncio.create_task(client(service)) for _ in range(4)]
            began = time.perf_counter()
            await service.upgrade()
            upgraded = time.perf_counter() - began
            await asyncio.sleep(1)
            over.set()
            await asyncio.gather(*clients)
            after = sorted(set(service.engines.providers.values()))
        expect(after == ["TensorRT"], f"it runs on {after}")
        return {
            "before": before,
            "after": after,
            "requests": len(took),
            "failed": 0,
            "upgrade_s": round(upgraded, 1),
            "slowest_over_median": round(max(took) / statistics.median(took), 1),
        }

    return asyncio.run(measure())


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


if __name__ == "__main__":
    sys.exit(main())
