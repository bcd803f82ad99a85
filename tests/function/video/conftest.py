"""A service that is loaded once, and clips that are made and swapped once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from function.faces.pipeline import Pipeline
from function.faces.select import Selection
from function.process.wiring.service import build_service
from function.requests import ClipRequest, Upload
from function.settings import load
from function.telemetry.timings import Timings
from tests.function.video.films import PHOTOS, film

HOPPER = Upload((PHOTOS / "grace_hopper.jpg").read_bytes(), "source")
COLLINS = Upload((PHOTOS / "astronaut.png").read_bytes(), "source")


class Swapper:
    """Swaps clips on one service; `told` is the progress of the last one."""

    def __init__(self, **settings):
        self._runner = asyncio.Runner()
        named = {f"EMBER_{name.upper()}": str(value) for name, value in settings.items()}
        self.service = self.run(self._opened(load(named)))
        self.told = []

    async def _opened(self, settings):
        opened = build_service(settings)
        await opened.load()
        return opened

    def run(self, work):
        return self._runner.run(work)

    def close(self):
        self.service.close()
        self._runner.close()

    def __call__(self, target, out, faces="all", *, source=HOPPER, parts=None, **more):
        self.told = []
        sources = source if isinstance(source, tuple) else (source,)
        wanted = ClipRequest(sources, Path(target), Path(out), Selection.parse(faces), **more)
        return self.run(
            self.service.clip(
                wanted,
                Timings(),
                progress=lambda done, total: self.told.append((done, total)),
                parts=parts,
            )
        )


@pytest.fixture(scope="session")
def swap():
    swapper = Swapper()
    yield swapper
    swapper.close()


@pytest.fixture(scope="session")
def pipeline(swap):
    stages = swap.service.engines.stages()
    return Pipeline(stages, stages.swapper())


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("clips")


@pytest.fixture(scope="session")
def plain(folder):
    """One second of an ordinary MP4."""
    return film(folder / "plain.mp4")


@pytest.fixture(scope="session")
def swapped(swap, plain, folder):
    """The same with every face swapped, what was told of it, and of its progress."""
    out = folder / "swapped.mp4"
    result = swap(plain, out)
    return out, result, swap.told
