"""`make bench-cost`: what a swap really costs in each class of the price list, and fair prices.

Swaps run one after the other on one thread, in this process. Time is the CPU's, which here is the
device, so that nothing else on the machine counts; memory is by how much the process grew at most.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from PIL import Image

from function.admission.policy import PricedJob, read
from function.cli.session import opened
from function.faces.select import Selection
from function.requests import SwapRequest, Upload
from function.runtime import heap
from function.service.service import Service, sample
from function.settings import load
from function.telemetry.timings import Timings
from warmup.settings.variables import replace as changed

CASES = {
    "480p": (854, 480),
    "720p": (1280, 720),
    "1080p": (1920, 1080),
    "1440p": (2560, 1440),
    "2160p": (3840, 2160),
}
"""Sizes of targets: those of the price list and two above it."""
FACES = 3


def photo(width: int, height: int, faces: int) -> bytes:
    """A photo of that size with the same face side by side, each a third of its height."""
    picture = Image.new("RGB", (width, height), (120, 130, 140))
    side = height // 2
    face = Image.open(io.BytesIO(sample("collins"))).resize((side, side))
    for number in range(faces):
        left = (2 * number + 1) * width // (2 * faces) - side // 2
        picture.paste(face, (left, height // 4))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=90)
    return out.getvalue()


def resident() -> tuple[int, int]:
    """Bytes that the process holds, and the most that it held since the last call."""
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    now, most = (int(status[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")  # forget the most
    return now, most


async def cost(service: Service, wanted: SwapRequest, rounds: int) -> tuple[float, float]:
    """Milliseconds of the CPU and mebibytes for one swap, in the middle of several."""
    times, sizes = [], []
    for _ in range(rounds):
        heap.trim()
        before, _ = resident()
        began = time.process_time()
        await service.swap(wanted, Timings())
        times.append((time.process_time() - began) * 1e3)
        sizes.append((resident()[1] - before) / 2**20)
    return median(times), median(sizes)


async def measure(rounds: int) -> None:
    """Print the table."""
    prices = read().prices
    unit = 0.0
    source = Upload(sample("hopper"), "source")
    print("target             CPU ms   MiB   price   fair")
    heap.settle()
    async with opened(changed(load(os.environ), threads=1)) as service:
        await service.warm()
        for faces in (1, FACES):
            for name, (width, height) in CASES.items():
                wanted = SwapRequest((source,), Upload(photo(width, height, faces), "target"))
                ms, mebibytes = await cost(service, wanted, rounds)
                unit = unit or ms / prices.of(PricedJob(854 * 480))
                price = prices.of(PricedJob(width * height))
                label = f"{name}, {faces} face{'s' * (faces > 1)}"
                print(f"{label:<15} {ms:8.0f} {mebibytes:6.0f} {price:6} {ms / unit:7.1f}")
        one = SwapRequest((source,), Upload(photo(854, 480, 1), "target"), Selection())
        two = replace(one, sources=(source, source))
        more = (await cost(service, two, rounds))[0] - (await cost(service, one, rounds))[0]
        print(f"one more source photo: {more:.0f} ms, fair {more / unit:.1f}")
    print("fair: the price at which a token buys the same time as in the cheapest class")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    asyncio.run(measure(parser.parse_args().rounds))


if __name__ == "__main__":
    main()
