"""`make bench-video`: frames per second of a clip against bare stage calls, and its memory.

Bare: the same calls (decode, RGB, follow faces, swap, back to YUV, encode) in a loop, without a
service, in as many threads as there are CPUs, each of which has a share of the clip for itself.
Both take turns in one run. Goal: at least 0.85 of it.

Memory: resident memory of the process over one minute of video. Goal: in its last twenty seconds it
is less than 5 % above that of the seconds 11 to 30.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import itertools
import os
import statistics
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import av
import cv2
import numpy as np
import psutil
from PIL import Image

from function.faces.pipeline import Pipeline
from function.images.decode import decode
from function.images.kinds import FileKind
from function.process.wiring.service import build_service
from function.requests import ClipRequest, Upload
from function.runtime.cpus import usable_cpus
from function.service.service import sample
from function.settings import load
from function.telemetry.timings import Timings
from function.video.editable_frame import EditableFrame
from function.video.facts import examine
from function.video.limits import ClipLimits
from function.video.reader import VideoReader
from function.video.track import Targets, Tracker
from function.video.writer import Encoding, PartWriter

RATE = 25
ROUNDS = 5


def main() -> int:
    """Make clips, swap them, print the figures; 1 when a goal is missed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=int, default=8, help="of the clip for speed")
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    arguments.add_argument("--size", default="1280x720")
    told = arguments.parse_args()
    width, height = map(int, told.size.split("x"))
    with TemporaryDirectory() as folder:
        return asyncio.run(measure(Path(folder), (width, height), told.seconds, told.rounds))


async def measure(folder: Path, size: tuple[int, int], seconds: int, rounds: int) -> int:
    """Both measurements with one service."""
    clip = film(folder / "clip.mp4", size, seconds)
    ember = build_service(load(os.environ))
    await ember.load()
    await ember.warm()
    source = sample("hopper")

    async def swap(target: Path) -> list[tuple[int, float]]:
        process, held = psutil.Process(), []

        def note(done: int, _: int) -> None:
            if done % RATE == 0:
                held.append((done // RATE, process.memory_info().rss / 1e6))

        wanted = ClipRequest((Upload(source, "source"),), target, folder / "out.mp4")
        await ember.clip(wanted, Timings(), progress=note)
        return held

    threads = usable_cpus()
    stages = ember.engines.stages()
    bare = Bare(Pipeline(stages, stages.swapper()), source, threads)
    rates: dict[str, list[float]] = {"bare": [], "ember": []}
    await swap(clip)
    for _ in range(rounds):
        began = time.perf_counter()
        await asyncio.to_thread(bare.once, clip)
        rates["bare"].append(seconds * RATE / (time.perf_counter() - began))
        began = time.perf_counter()
        await swap(clip)
        rates["ember"].append(seconds * RATE / (time.perf_counter() - began))
    pairs = zip(rates["ember"], rates["bare"], strict=True)
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    faces = f"{size[0]}×{size[1]}, two faces, {seconds} s, medians of {rounds} alternating runs"
    print(f"\nFrames per second, {faces}\n")
    print("| what | frames/s |\n|---|---|")
    print(f"| bare stage calls, {threads} threads | {statistics.median(rates['bare']):.1f} |")
    print(f"| ember | {statistics.median(rates['ember']):.1f} |")
    print(f"\nEmber ÷ bare: {ratio:.2f} (goal ≥ 0.85)")

    held = dict(await swap(film(folder / "minute.mp4", size, 60)))
    ember.close()
    print("\n| seconds done | resident MB |\n|---|---|")
    for second in (1, 10, 20, 30, 40, 50, 60):
        print(f"| {second} | {held[second]:.0f} |")
    early, late = (
        statistics.median(held[second] for second in range(*span)) for span in ((11, 31), (41, 61))
    )
    growth = late / early - 1
    print(f"\nGrowth from the seconds 11 to 30 to the last 20: {growth:+.1%} (goal < 5 %)")
    return 0 if ratio >= 0.85 and growth < 0.05 else 1


class Bare:
    """The calls that no swap of a clip can do without."""

    def __init__(self, pipeline: Pipeline, source: bytes, threads: int) -> None:
        cv2.setNumThreads(1)
        self._pipeline, self._threads = pipeline, threads
        person, _ = pipeline.portrait(decode(source), Timings())
        assert person is not None
        self._person = person

    def once(self, path: Path) -> None:
        """Swap a clip; the encoded parts are dropped."""
        facts = examine(path, FileKind.MP4, ClipLimits())
        share = -(-facts.frames // self._threads)
        tick = int(1 / facts.time_base) // RATE
        bounds = [k * share * tick for k in range(self._threads + 1)]
        workers = [
            threading.Thread(target=self._some, args=(path, facts, begin, end))
            for begin, end in itertools.pairwise(bounds)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _some(self, path: Path, facts: object, begin: int, end: int) -> None:
        reader, trace = VideoReader(path, FileKind.MP4, ClipLimits()), Timings()
        writer = PartWriter(Encoding(facts, FileKind.MP4))  # type: ignore[arg-type]
        tracker = Tracker(self._pipeline, Targets(), float(RATE))
        if begin:
            reader.seek(begin)
        while (frame := reader.next(end)) is not None:
            editable = EditableFrame(frame, facts)  # type: ignore[arg-type]
            faces = tracker.follow(editable.picture, editable.at, trace)
            canvas, _ = self._pipeline.swap(editable.picture, faces, {"": self._person}, trace)
            editable.put(canvas, [face.box for face in faces])
            writer.add(editable.frame)
        writer.finish()


def film(path: Path, size: tuple[int, int], seconds: int) -> Path:
    """A clip of the two people of the samples before a camera that moves, with sound."""
    photos = [np.asarray(Image.open(io.BytesIO(sample(name)))) for name in ("collins", "hopper")]
    high = [cv2.resize(each, (each.shape[1] * 900 // each.shape[0], 900)) for each in photos]
    wide = np.concatenate(high, 1)
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=RATE, options={"preset": "veryfast", "crf": "20"})
        stream.width, stream.height = size
        voice = file.add_stream("aac", rate=48_000)
        voice.layout = "mono"
        for k in range(seconds * RATE):
            t = 2 * np.pi * k / (4 * RATE)
            middle = wide.shape[1] / 2 + 40 * np.sin(t), 380 + 15 * np.cos(t)
            zoom = size[0] / wide.shape[1] * (1.1 + 0.06 * np.sin(t))
            matrix = cv2.getRotationMatrix2D(middle, 4 * np.sin(t), zoom)
            matrix[:, 2] += np.array(size) / 2 - middle
            pixels = cv2.warpAffine(wide, matrix, size, borderMode=cv2.BORDER_REFLECT)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        file.mux(stream.encode(None))
        for begin in range(0, seconds * 48_000, 1024):
            wave = 0.4 * np.sin(np.arange(begin, begin + 1024) * 440 * 2 * np.pi / 48_000)
            tone = av.AudioFrame.from_ndarray(wave.astype(np.float32)[None], "fltp", "mono")
            tone.sample_rate = 48_000
            file.mux(voice.encode(tone))
        file.mux(voice.encode(None))
    return path


if __name__ == "__main__":
    sys.exit(main())
