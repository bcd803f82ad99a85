"""What is measured from a process's start: `python -m tests.bench.neural.child WHAT FACES`.

`load` prints, in milliseconds, how long loading takes, and what first runs take above later ones.
`ours` and `theirs` end when they have made the first swap.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path


def main() -> None:
    """Do what the first word says."""
    {"load": load, "ours": ours, "theirs": theirs}[sys.argv[1]]()


def load() -> None:
    """Load three kept graphs at the same time, then run each several times."""
    import numpy as np

    from function.faces import families
    from function.runtime.cpus import usable_cpus
    from function.service import opening
    from warmup.models import manifest

    made, *_ = pickle.loads(Path(sys.argv[2]).read_bytes())
    entries = manifest.read(made.whole)
    import function.runtime.backends.optimised  # noqa: F401  what a replica has imported by then

    open_engine = partial(opening.open_engine, threads=usable_cpus(), store=made.store)
    began = time.perf_counter()
    with ThreadPoolExecutor(len(entries)) as pool:
        engines = list(pool.map(open_engine, entries))
    loaded = time.perf_counter() - began
    first = steady = 0.0
    for model, engine in zip(entries, engines, strict=True):
        items = families.FAMILIES[model.role, model.family].items
        inputs = [np.ones((1, *item), np.float32) for item in items]
        times = []
        for _ in range(4):
            began = time.perf_counter()
            engine.run(*inputs)
            times.append(time.perf_counter() - began)
        first, steady = first + times[0], steady + min(times[1:])
    facts = {"load": loaded, "runs": first - steady}
    print(json.dumps({name: value * 1e3 for name, value in facts.items()}))


def ours() -> None:
    """Load all, look for faces on both photos, identify the source, swap the given face."""
    from function.faces.anchors import Anchored
    from function.faces.detect import View
    from function.faces.options import SwapOptions
    from function.faces.swappers.protocol import SourceFace
    from function.runtime.cpus import usable_cpus
    from function.service import opening
    from function.telemetry.timings import Timings
    from warmup.models import manifest

    made, source_face, target_face = pickle.loads(Path(sys.argv[2]).read_bytes())
    with ThreadPoolExecutor(1) as pool:
        entries = manifest.read(made.whole)
        loading = pool.submit(opening.load, entries, usable_cpus(), made.store)
        from function.images.decode import decode

        source, target = (decode(path.read_bytes()) for path in made.photos)
        loaded = loading.result()
    detector = Anchored(loaded.engines["detect"])
    for picture in (source, target):
        height, width = picture.pixels.shape[:2]
        view = View("plain", (0, 0, width, height), (640, 640))
        detector.detect(picture.pixels, view, 0.99)
    (embedding,) = loaded.identity.embed(source.pixels, [source_face])
    person = SourceFace(source, source_face, embedding)
    canvas = target.pixels.copy()
    how = {"gray": False, "timings": Timings()}
    loaded.swapper().swap_all(canvas, [target_face], [person], SwapOptions(boost=128), **how)
    _end()


def theirs() -> None:
    """The same with the classes of the package insightface, as its documentation loads them."""
    from types import SimpleNamespace

    import cv2
    import insightface

    made, source_face, target_face = pickle.loads(Path(sys.argv[2]).read_bytes())
    detect, identity, swap = (
        insightface.model_zoo.get_model(str(path), providers=["CPUExecutionProvider"])
        for path in made.published
    )
    detect.prepare(ctx_id=-1, input_size=(640, 640), det_thresh=0.99)
    source, target = (cv2.imread(str(path)) for path in made.photos)
    for image in (source, target):
        detect.detect(image)
    person = insightface.app.common.Face(kps=source_face.five)
    identity.get(source, person)
    swap.get(target, SimpleNamespace(kps=target_face.five), person, paste_back=True)
    _end()


def _end() -> None:
    """Tell, and leave at once: how long it takes to end is nobody's question."""
    sys.stdout.write("swapped\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
