"""What models get while photos are swapped: to calibrate plans, and to prove them."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import function
from function.faces import families
from function.process.wiring.service import build_service
from function.service import opening
from warmup.settings import variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from function.runtime.engine import Engine
    from function.settings import Settings
    from warmup.models.manifest import Model
    from warmup.plans.precision import Feed

    Item = tuple[NDArray[np.float32], ...]
    """One item of a batch: an array [1, ...] for each input of the model."""
    Inputs = dict[str, list[Item]]
    """By role."""

_MOST = 512
_IMAGES = {".jpg", ".jpeg", ".png", ".webp"}


def record(settings: Settings, file: Path | None, photos: Sequence[Path]) -> Inputs:
    """The items that each model gets while photos are swapped with themselves on the CPU."""
    fed: Inputs = {}
    asyncio.run(_swap_all(settings, file, photos, fed))
    return fed


async def _swap_all(
    settings: Settings,
    file: Path | None,
    photos: Sequence[Path],
    fed: Inputs,
) -> None:
    from function.problems import Problem
    from function.requests import SwapRequest, Upload
    from function.telemetry.timings import Timings

    def opened(model: Model, **options: Any) -> Engine:
        return _Recorded(opening.open_engine(model, **options), fed.setdefault(model.role, []))

    changed = variables.replace(
        settings, manifest=file or settings.models.manifest, backends=("cpu",), variant=None
    )
    service = build_service(changed, open_engine=opened)
    try:
        await service.fetch()
        await service.load()
        for photo in photos:
            content = photo.read_bytes()
            request = SwapRequest((Upload(content, "source"),), Upload(content, "target"))
            try:
                await service.swap(request, Timings())
            except Problem as problem:  # no face, no photo: the next may have one
                click.echo(f"{photo.name}: {problem.detail}", err=True)
    finally:
        service.close()


class _Recorded:
    """An engine that keeps the items that it gets."""

    def __init__(self, engine: Engine, fed: list[Item]) -> None:
        self._engine, self._fed = engine, fed

    @property
    def provider(self) -> str:
        return self._engine.provider

    @property
    def items(self) -> int | None:
        return self._engine.items

    def run(self, *inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        for row in range(len(inputs[0])):
            if len(self._fed) < _MOST:
                self._fed.append(tuple(each[row : row + 1].copy() for each in inputs))
        return self._engine.run(*inputs)


def feeds(model: Model, fed: Sequence[Item]) -> Iterator[Feed]:
    """Items as the graph of a model gets them: those of the most usual shape."""
    from function.runtime.backends.onnx import OnnxEngine
    from function.runtime.proof import alike

    engine = OnnxEngine(model.path, ports=families.ports(model))
    yield from (engine.feed(*inputs) for inputs in alike(fed))


def samples() -> list[Path]:
    """The photos that ship with Ember."""
    return photos_below(Path(function.__file__).parent / "samples")


def photos_below(folder: Path) -> list[Path]:
    """The photos of a folder and of those inside, by path."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in _IMAGES)


def digest(folder: Path) -> str:
    """A digest of the photos of a folder, whatever they are called."""
    digests = [hashlib.sha256(path.read_bytes()).digest() for path in photos_below(folder)]
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()
