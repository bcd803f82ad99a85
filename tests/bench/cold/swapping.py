"""What every peer serves: the same swap, in the process of the framework, behind one function.

As documented, a peer loads each model by `InferenceSession(path)`, one after the other. Tuned, it
loads them as Ember does, in parallel, with Ember's threads.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING

from function.assemble import embedded
from function.faces import models
from warmup.manifest import read

if TYPE_CHECKING:
    from function.faces.models import Models

MANIFEST = Path(os.environ.get("EMBER_MANIFEST") or embedded())
STORE = Path(os.environ["EMBER_STORE"])
TUNED = os.environ.get("BENCH_TUNED") == "1"


class Swap:
    """The models, loaded when it is made unless they are given; a call swaps."""

    def __init__(self, stages: Models | None = None) -> None:
        from function.faces.pipeline import Pipeline
        from function.faces.swappers.mesh import MeshSwapper

        self._pipeline = Pipeline(stages or (fast() if TUNED else plain()), MeshSwapper())

    def __call__(self, source: bytes, target: bytes) -> bytes:
        """Swap the face of one JPEG into another; gives a JPEG."""
        from function.images.decode import decode
        from function.images.encode import encode
        from function.images.picture import Picture
        from function.trace import Trace

        trace, pipeline = Trace(), self._pipeline
        photo, picture = decode(source), decode(target)
        person, _ = pipeline.portrait(photo, trace)
        faces = pipeline.find(picture, trace, identify=True)
        canvas, cautions = pipeline.swap(picture, faces, person, trace)
        pipeline.judge(canvas, faces, cautions, person, trace)
        return encode(Picture(canvas), "jpeg")

    def json(self, body: dict[str, str]) -> dict[str, str]:
        """The same with base64 in and out, as most frameworks' examples have it."""
        image = self(base64.b64decode(body["source"]), base64.b64decode(body["target"]))
        return {"image": base64.b64encode(image).decode()}


class Plain:
    """An engine as the documentation of ONNX Runtime shows it."""

    provider = "CPUExecutionProvider"

    def __init__(self, path: Path) -> None:
        import onnxruntime

        self._session = onnxruntime.InferenceSession(str(path))
        self._input = self._session.get_inputs()[0].name

    def run(self, batch):
        return self._session.run(None, {self._input: batch})


def plain() -> Models:
    """The models as the documentation of ONNX Runtime loads them."""
    chosen = read(MANIFEST)
    return models.build(chosen, {model.role: Plain(model.path) for model in chosen})


def fast() -> Models:
    """The models loaded the fastest way that is known."""
    return models.load(read(MANIFEST), store=STORE)
