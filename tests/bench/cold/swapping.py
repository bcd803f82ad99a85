"""What every peer serves: the same swap, in the process of the framework, behind one function.

As documented, a peer loads each model by `InferenceSession(path)`, one after the other. Tuned, it
loads them as Ember does, in parallel, with Ember's threads.
"""

from __future__ import annotations

import base64
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from function.faces import models
from function.process.wiring.service import embedded
from function.service import opening
from warmup.models.manifest import read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.face import Face
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
        from function.telemetry.timings import Timings

        trace, pipeline = Timings(), self._pipeline
        photo, picture = decode(source), decode(target)
        person, _ = pipeline.portrait(photo, trace)
        faces = pipeline.find(picture, trace, identify=True)
        canvas, warnings = pipeline.swap(picture, faces, {"": person}, trace)
        pipeline.judge(canvas, faces, warnings, {"": person}, trace)
        return encode(Picture(canvas), "jpeg")

    def many(self, pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
        """Swap in each pair of a source and a target, with the identities of all as one batch.

        The other models take one item at a time.
        """
        from function.faces.select import largest
        from function.faces.swappers.protocol import SourceFace
        from function.images.decode import decode
        from function.images.encode import encode
        from function.images.picture import Picture
        from function.telemetry.timings import Timings

        trace, pipeline = Timings(), self._pipeline
        photos = [decode(source) for source, _ in pairs]
        pictures = [decode(target) for _, target in pairs]
        people = [largest(pipeline.find(photo, trace, identify=False)) for photo in photos]
        found = [pipeline.find(picture, trace, identify=False) for picture in pictures]
        persons, *known = self._identities(
            [
                [(photo.pixels, one) for photo, one in zip(photos, people, strict=True)],
                *(
                    [(picture.pixels, face) for face in faces]
                    for picture, faces in zip(pictures, found, strict=True)
                ),
            ]
        )
        canvases = []
        for photo, one, own, picture, faces, theirs in zip(
            photos, people, persons, pictures, found, known, strict=True
        ):
            chosen = [replace(f, embedding=e) for f, e in zip(faces, theirs, strict=True)]
            canvas, _ = pipeline.swap(picture, chosen, {"": SourceFace(photo, one, own)}, trace)
            canvases.append(canvas)
        self._identities(
            [[(canvas, f) for f in faces] for canvas, faces in zip(canvases, found, strict=True)]
        )
        return [encode(Picture(canvas), "jpeg") for canvas in canvases]

    def _identities(self, groups: list[list[tuple[NDArray, Face]]]) -> list[list[NDArray]]:
        """The identity of each face in each group, in one run of the model."""
        import numpy as np

        from function.faces.identity import _chip

        engine = self._pipeline.models.engines["identity"]
        chips = [_chip(pixels, face.mesh) for group in groups for pixels, face in group]
        rows = iter(engine.run(np.stack(chips, dtype=np.float32))[0])
        return [[next(rows) for _ in group] for group in groups]

    def json(self, body: dict[str, str]) -> dict[str, str]:
        """A swap with base64 in and out, as most frameworks' examples have it."""
        return _told(self(*_photos(body)))

    def jsons(self, bodies: Sequence[dict[str, str]]) -> list[dict[str, str]]:
        """The same for many at once."""
        return [_told(image) for image in self.many([_photos(body) for body in bodies])]


def _photos(body: dict[str, str]) -> tuple[bytes, bytes]:
    return base64.b64decode(body["source"]), base64.b64decode(body["target"])


def _told(image: bytes) -> dict[str, str]:
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
    return opening.load(read(MANIFEST), store=STORE)
