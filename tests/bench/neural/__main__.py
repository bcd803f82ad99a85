"""Measures and prints the tables of docs/benchmarks.md; all pairs take turns.

- The time of a whole swap of two photos that is not spent in models.
- Tiles of a larger face as one batch against as many single runs.
- The package insightface making the same swap: what it adds to the run of its model, and how long
  it takes from the start of a process to the first swap.
- Loading three models at the same time from graphs that are kept optimised, with their files not in
  memory, against reading the bytes of these files once.
"""

from __future__ import annotations

import argparse
import gc
import json
import pickle
import statistics
import subprocess
import sys
import time
import warnings
from contextlib import redirect_stdout
from io import StringIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import onnxruntime

from function.faces import models
from function.faces.options import SwapOptions
from function.faces.pipeline import Pipeline
from function.faces.select import largest
from function.images.decode import decode
from function.images.encode import encode
from function.images.picture import Picture
from function.runtime.cpus import usable_cpus
from function.service import opening
from function.telemetry.timings import Timings
from tests.bench.neural import files
from warmup.models import manifest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.swappers.protocol import SourceFace
    from function.runtime.engine import Engine
    from tests.bench.neural.files import Made

PARTS = ("outside", "tiles", "beside", "loading", "first")
FACTORS = (2, 4)
SMALL = SwapOptions(boost=128)
"""One tile for a face, so that there is the least of the model to hide behind."""


class Clocked:
    """An engine that counts the seconds in which it runs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.provider, self.items = engine.provider, engine.items
        self.spent = 0.0

    def run(self, *inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        began = time.perf_counter()
        outputs = self._engine.run(*inputs)
        self.spent += time.perf_counter() - began
        return outputs


def main() -> None:
    """Make the files, measure, print."""
    parser = argparse.ArgumentParser(prog="make bench-neural")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=PARTS, help="one part")
    words = parser.parse_args()
    parts, rounds = [words.only] if words.only else PARTS, words.rounds
    made = files.make()
    faces = files.FOLDER / "faces.pickle"
    faces.write_bytes(pickle.dumps((made, *inside(made, parts, rounds))))
    gc.collect()  # what maps the files, so that they can be taken out of memory
    if "loading" in parts:
        loading(made, faces, rounds)
    if "first" in parts:
        first(made, faces, rounds)


def inside(made: Made, parts: Sequence[str], rounds: int) -> tuple[Face, Face]:
    """What is measured in this process; the faces of source and target."""
    cv2.setNumThreads(1)  # as in a replica
    bench = Bench(made)
    for part in ("outside", "tiles", "beside"):
        if part in parts:
            getattr(bench, part)(rounds)
    return bench.source.face, bench.face


def loading(made: Made, faces: Path, rounds: int) -> None:
    """Three graphs at once against their bytes."""
    kept = made.kept
    times: dict[str, list[float]] = {"read": [], "warm": [], "load": [], "runs": []}
    for _ in range(rounds):
        files.drop(kept)
        times["read"].append(files.read(kept))
        times["warm"].append(files.read(kept))
        files.drop(kept)
        done = child("load", faces)
        for name, value in json.loads(done).items():
            times[name].append(value)
    total = sum(path.stat().st_size for path in kept) / 1e6
    print(f"\nLoading three models, {total:.0f} MB, medians of {rounds} turns\n")
    print("| what | ms |\n|---|---|")
    print(f"| read the bytes, not in memory | {statistics.median(times['read']):.0f} |")
    print(f"| read the bytes, in memory | {statistics.median(times['warm']):.0f} |")
    print(f"| load, not in memory | {statistics.median(times['load']):.0f} |")
    print(f"| first runs above later ones | {statistics.median(times['runs']):.0f} |")
    loads = ratio(times["load"], times["read"])
    whole = [load + runs for load, runs in zip(times["load"], times["runs"], strict=True)]
    print(f"\nload ÷ read: {loads:.2f} (goal ≤ 1.3)")
    print(f"load and first runs ÷ read: {ratio(whole, times['read']):.2f}")


class Bench:
    """A pipeline of full-size models, and one pair of photos.

    Attributes:
        source: the person to put in.
        face: the face to replace.
    """

    def __init__(self, made: Made) -> None:
        entries = manifest.read(made.found)
        self._swapper_file = made.pack / "inswapper_128.onnx"
        self._engines = {
            each.role: Clocked(opening.open_engine(each, threads=usable_cpus(), store=made.store))
            for each in entries
        }
        loaded = models.build(entries, self._engines)
        self._pipeline = Pipeline(loaded, loaded.swapper())
        self._photos = [path.read_bytes() for path in made.photos]
        source, self._target = (decode(each) for each in self._photos)
        person, _ = self._pipeline.portrait(source, Timings())
        assert person is not None
        self.source: SourceFace = person
        self.face: Face = largest(self._pipeline.find(self._target, Timings(), identify=True))

    def outside(self, rounds: int) -> None:
        """The part of a swap that is not models."""
        self._whole()
        wholes, outsides = [], []
        for _ in range(rounds):
            before = self._spent()
            began = time.perf_counter()
            self._whole()
            whole = time.perf_counter() - began
            wholes.append(whole * 1e3)
            outsides.append((whole - self._spent() + before) * 1e3)
        print(f"\nA whole swap of two photos of 2 megapixels, medians of {rounds} runs\n")
        print("| what | ms |\n|---|---|")
        print(f"| all | {statistics.median(wholes):.0f} |")
        print(f"| outside of models | {statistics.median(outsides):.1f} |")
        print(f"\noutside ÷ all: {ratio(outsides, wholes):.1%} (goal ≤ 10 %)")

    def tiles(self, rounds: int) -> None:
        """Batches against single runs."""
        print("\nTiles of one face, medians of the turns\n")
        print("| side | tiles | single runs, ms | one batch, ms | single ÷ batch |")
        print("|---|---|---|---|---|")
        rng = np.random.default_rng(0)
        engine = self._engines["swap"]
        for factor in FACTORS:
            count = factor * factor
            images = rng.random((count, 3, 128, 128), np.float32)
            sources = np.repeat(rng.random((1, 512), np.float32), count, 0)
            singles, batch = [], []
            engine.run(images, sources)
            for _ in range(max(3, rounds // factor)):
                began = time.perf_counter()
                for n in range(count):
                    engine.run(images[n : n + 1], sources[n : n + 1])
                between = time.perf_counter()
                engine.run(images, sources)
                singles.append((between - began) * 1e3)
                batch.append((time.perf_counter() - between) * 1e3)
            medians = f"{statistics.median(singles):.0f} | {statistics.median(batch):.0f}"
            print(f"| {128 * factor} | {count} | {medians} | {ratio(singles, batch):.2f} |")
        print("\ngoal: single ÷ batch > 1")

    def beside(self, rounds: int) -> None:
        """What both add to the run of the model for one face."""
        theirs = self._insightface()
        bgr = np.ascontiguousarray(self._target.pixels[..., ::-1])
        length = float(np.linalg.norm(self.source.embedding))
        person = SimpleNamespace(normed_embedding=self.source.embedding / length)
        face = SimpleNamespace(kps=self.face.five)
        own, other = [], []
        for turn in range(rounds + 1):
            cv2.setNumThreads(usable_cpus())  # as it would by itself
            before, began = theirs.session.spent, time.perf_counter()
            theirs.get(bgr, face, person, paste_back=True)
            spent = time.perf_counter() - began - theirs.session.spent + before
            cv2.setNumThreads(1)
            engine = self._engines["swap"]
            before, began = engine.spent, time.perf_counter()
            canvas = self._target.pixels.copy()
            self._pipeline.swapper.swap_all(
                canvas, [self.face], [self.source], SMALL, gray=False, timings=Timings()
            )
            if turn:
                other.append(spent * 1e3)
                own.append((time.perf_counter() - began - engine.spent + before) * 1e3)
        print(f"\nOne face of 2 megapixels outside of the model, medians of {rounds} turns\n")
        print("| who | ms |\n|---|---|")
        print(f"| insightface | {statistics.median(other):.1f} |")
        print(f"| Ember | {statistics.median(own):.1f} |")
        print(f"\ninsightface ÷ Ember: {ratio(other, own):.1f} (goal ≥ 1.5)")

    def _insightface(self) -> Any:
        warnings.simplefilter("ignore", FutureWarning)  # of what it uses
        from insightface.model_zoo.inswapper import INSwapper

        onnxruntime.set_default_logger_severity(3)  # it would complain of the projection
        with redirect_stdout(StringIO()):
            swapper = INSwapper(str(self._swapper_file))
        session = swapper.session
        clocked = Clocked(SimpleNamespace(run=session.run, provider="", items=None))  # type: ignore[arg-type]
        swapper.session = clocked
        return swapper

    def _spent(self) -> float:
        return sum(each.spent for each in self._engines.values())

    def _whole(self) -> None:
        trace, pipeline = Timings(), self._pipeline
        source, target = (decode(each) for each in self._photos)
        person, _ = pipeline.portrait(source, trace)
        faces = pipeline.find(target, trace, identify=True)
        canvas, warnings = pipeline.swap(target, faces, {"": person}, trace, SMALL)
        pipeline.judge(canvas, faces, warnings, {"": person}, trace)
        encode(Picture(canvas), "jpeg")


def first(made: Made, faces: Path, rounds: int) -> None:
    """From the start of a process to the first swap."""
    print(f"\nProcess start to the first swap, medians of {rounds} pairs\n")
    print("| files | insightface, s | Ember, s | insightface ÷ Ember |\n|---|---|---|---|")
    for cold in (True, False):
        times: dict[str, list[float]] = {"theirs": [], "ours": []}
        for _ in range(rounds):
            for who, own in (("theirs", made.published), ("ours", made.kept)):
                if cold:
                    files.drop([*own, *made.published])
                began = time.perf_counter()
                child(who, faces)
                times[who].append(time.perf_counter() - began)
        where = "not in memory" if cold else "in memory"
        medians = " | ".join(f"{statistics.median(each):.2f}" for each in times.values())
        print(f"| {where} | {medians} | {ratio(times['theirs'], times['ours']):.2f} |")
    print("\ngoal: insightface ÷ Ember ≥ 3")


def child(what: str, faces: Path) -> str:
    """The last line of a process that is measured."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.neural.child", what, str(faces)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout.splitlines()[-1]


def ratio(ours: list[float], others: list[float]) -> float:
    """The median of what pairs give."""
    return statistics.median(one / other for one, other in zip(ours, others, strict=True))


if __name__ == "__main__":
    main()
