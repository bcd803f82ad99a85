"""`make bench-watermark`: how often the imperceptible mark is read after what happens to pictures.

Each photo is really swapped, marked, attacked, encoded and decoded; its faces are found again, and
read. A cell of the table has every host (`hosts.py`) with several keys and payloads.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from dataclasses import dataclass, field
from statistics import mean, median
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.cli.session import opened
from function.faces.pipeline import Pipeline
from function.images.picture import Picture
from function.settings import load
from function.telemetry.timings import Timings
from function.trust.watermark import faces as in_faces
from function.trust.watermark.carriers import rings
from function.trust.watermark.keys import PUBLIC, WatermarkKey, WatermarkKeys
from function.trust.watermark.policy import WhichMarks
from function.trust.watermark.reading import find
from function.trust.watermark.square import luma, moved, part_around, placed
from function.trust.watermark.watermark import Watermark, decoded
from tests.bench.watermark.attacks import ATTACKS, saved
from tests.bench.watermark.hosts import CHANGES, Host, hosts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

SIZES = (96, 128, 192, 256, 384, 512)


@dataclass(slots=True)
class Column:
    """What was measured at one size of faces."""

    read: dict[str, list[bool]] = field(default_factory=dict)
    wrong: int = 0
    psnr: list[float] = field(default_factory=list)
    ssim: list[float] = field(default_factory=list)
    embed_ms: list[float] = field(default_factory=list)
    read_ms: list[float] = field(default_factory=list)
    moved: list[float] = field(default_factory=list)


def box_of(pixels: Pixels, host: Host) -> Pixels:
    """The part of a picture in the face's box."""
    box = host.face.box
    return pixels[int(box.top) : int(box.bottom), int(box.left) : int(box.right)]


def psnr(one: Pixels, other: Pixels) -> float:
    """Peak signal to noise in decibels, over all channels."""
    return float(cv2.PSNR(one, other))


def ssim(one: Pixels, other: Pixels) -> float:
    """Structural similarity of luma (Wang et al. 2004: 11 × 11 Gaussian, deviation 1.5)."""
    a, b = (luma(each).astype(np.float64) for each in (one, other))

    def blur(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(cv2.GaussianBlur(values, (11, 11), 1.5))

    mean_a, mean_b = blur(a), blur(b)
    both = blur(a * b) - mean_a * mean_b
    each = blur(a * a) - mean_a**2 + blur(b * b) - mean_b**2
    first, second = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    top = (2 * mean_a * mean_b + first) * (2 * both + second)
    return float((top / ((mean_a**2 + mean_b**2 + first) * (each + second))).mean())


def measure(pipeline: Pipeline, size: int, rounds: int, attacks: list[str], count: int) -> Column:
    """One column of the table."""
    column = Column({name: [] for name in attacks})
    metric, identity = pipeline.models.identity.metric, pipeline.models.identity
    for host in list(hosts(pipeline, size))[:count]:
        for number in range(rounds):
            key = WatermarkKey(number + 1, bytes([number]) * 16)
            watermark = Watermark(WatermarkKeys(key))
            payload = key.payload(f"{host.name} {size}")
            marked = host.pixels.copy()
            began = time.perf_counter()
            watermark.mark(marked, [host.face], payload, WhichMarks.FACES)
            column.embed_ms.append((time.perf_counter() - began) * 1e3)
            column.psnr.append(psnr(box_of(marked, host), box_of(host.pixels, host)))
            column.ssim.append(ssim(box_of(marked, host), box_of(host.pixels, host)))
            near = [
                metric.between(identity.embed(each, [host.face])[0], host.source.embedding)
                for each in (host.pixels, marked)
            ]
            column.moved.append(near[1] - near[0])
            for name in attacks:
                seen = np.ascontiguousarray(ATTACKS[name](marked))
                found = pipeline.find(Picture(seen), Timings(), identify=False)
                began = time.perf_counter()
                readings = watermark.read_faces(seen, found)
                column.read_ms.append((time.perf_counter() - began) * 1e3)
                payloads = {each.payload for each in readings}
                column.read[name].append(payload in payloads)
                column.wrong += bool(payloads - {payload})
    return column


def show(columns: dict[int, Column]) -> None:
    """Print the table."""
    sizes = list(columns)
    print("| attack | " + " | ".join(f"{size} px" for size in sizes) + " |")
    print("|---" * (len(sizes) + 1) + "|")
    for name in next(iter(columns.values())).read:
        cells = (f"{100 * mean(columns[size].read[name]):.0f}" for size in sizes)
        print(f"| {name} | " + " | ".join(cells) + " |")
    every = columns.values()
    rows = {
        "PSNR in the face's box, mean (least), dB": [
            f"{mean(each.psnr):.1f} ({min(each.psnr):.1f})" for each in every
        ],
        "SSIM": [f"{mean(each.ssim):.3f}" for each in every],
        "mark, ms": [f"{median(each.embed_ms):.1f}" for each in every],
        "read, ms": [f"{median(each.read_ms):.0f}" for each in every],
        "distance to the source, mean change": [f"{mean(each.moved):+.4f}" for each in every],
        "wrong payloads": [str(each.wrong) for each in every],
        "n": [str(len(each.psnr)) for each in every],
    }
    for name, values in rows.items():
        print(f"| {name} | " + " | ".join(values) + " |", flush=True)


def false_alarms(pipeline: Pipeline, count: int) -> None:
    """Read unmarked crops by one of two keys, each fifth also far, and print what was found.

    They are the squares of faces that were swapped, changed in size, angle, place and brightness,
    mirrored, made noisy and compressed by chance.
    """
    rng = np.random.default_rng(3)
    unmarked = [host for size in (128, 192, 256) for host in hosts(pipeline, size)]
    keys = (PUBLIC, WatermarkKey(9, b"another key here"))
    alarms, largest, sure, searches = 0, 0.0, 0, 0
    for number in range(count):
        host = unmarked[int(rng.integers(len(unmarked)))]
        gray, five = luma(host.pixels), host.face.five
        if rng.random() < 0.5:
            gray, five = in_faces.mirrored(gray, five)
        noise = rng.normal(0, rng.uniform(0, 3), gray.shape)
        levels = np.asarray(np.clip(gray * rng.uniform(0.6, 1.2) + noise, 0, 255), np.uint8)
        seen = luma(saved(cv2.cvtColor(levels, cv2.COLOR_GRAY2RGB), int(rng.integers(50, 96))))
        shift = rng.uniform(-9, 9), rng.uniform(-9, 9)
        first = moved(placed(five), rng.uniform(-0.3, 0.3), rng.uniform(-3, 3), shift)
        key = keys[number % 2]
        for reach in (in_faces.NEAR, in_faces.FAR)[: 1 if number % 5 else 2]:
            found = find(*part_around(seen, first), rings(key.secret, in_faces.USE), reach)
            searches += 1
            largest = max(largest, found.z)
            sure += found.z >= reach.sure
            alarms += decoded(found, key, reach.sure) is not None
        if (number + 1) % 1000 == 0 or number + 1 == count:
            print(
                f"{number + 1} unmarked crops: {alarms} false alarms; largest z {largest:.2f}; "
                f"{sure} of {searches} searches were sure enough to be decoded",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="of faces, in pixels")
    parser.add_argument("--attacks", default="", help="parts of names, with commas; all by default")
    parser.add_argument("--rounds", type=int, default=4, help="keys and payloads for each host")
    parser.add_argument("--hosts", type=int, default=2 * len(CHANGES), help="how many hosts")
    parser.add_argument("--crops", type=int, default=10_000, help="unmarked crops; 0 for none")
    options = parser.parse_args()
    names = options.attacks.split(",")
    attacks = [name for name in ATTACKS if any(part in name for part in names)]
    cv2.setNumThreads(1)  # as in a replica
    asyncio.run(run(options, attacks))


async def run(options: argparse.Namespace, attacks: list[str]) -> None:
    """Measure and print."""
    async with opened(load(os.environ)) as service:
        stages = service.engines.stages()
        pipeline = Pipeline(stages, stages.swapper())
        columns = {}
        for size in map(int, filter(None, options.sizes.split(","))):
            columns[size] = measure(pipeline, size, options.rounds, attacks, options.hosts)
            show({size: columns[size]})
        if len(columns) > 1:
            show(columns)
        if options.crops:
            false_alarms(pipeline, options.crops)


if __name__ == "__main__":
    main()
