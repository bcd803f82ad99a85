"""Whole swaps through a service whose models are neural: every mix that makes sense, in batches."""

from __future__ import annotations

import asyncio
import hashlib
import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from function.faces.options import Mask, SwapOptions
from function.problems import Problem
from function.process.wiring.service import embedded
from function.request_context import RequestContext, current
from function.requests import SwapRequest, Upload
from function.service.engine_config import EngineConfig
from function.service.service import Service, sample
from function.telemetry.timings import Timings
from function.weights import cutout
from tests import neural
from tests.graphs import swapping
from warmup.models.manifest import read

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from function.requests import SwapResult
    from warmup.models.manifest import Model

HOPPER = Upload(sample("hopper"), "source")
COLLINS = Upload(sample("collins"), "target")

EMBEDDED = {model.role: model for model in read(embedded())}


def entry(role: str, family: str, path: Path) -> str:
    data = path.read_bytes()
    return f"""
[[model]]
role = "{role}"
family = "{family}"
uri = "{path.as_uri()}"
size = {len(data)}
sha256 = "{hashlib.sha256(data).hexdigest()}"
licence = "MIT"
"""


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Callable[..., Service]]:
    """Opens services with these families; embedded models where they are named like that."""
    services: list[Service] = []

    async def make(*cut: str, **families: str) -> Service:
        text = ""
        for role, family in families.items():
            if role in EMBEDDED and EMBEDDED[role].family == family:
                path = embedded().parent / f"{family}.onnx"
            elif family == "inswapper_128":
                path = swapping(tmp_path / "swap.onnx", 128, "invert", shift=1.0)
            else:
                path = neural.make(tmp_path / f"{family}.onnx", family)
            options = ""
            if role in cut:
                source, path = path, tmp_path / f"{role}.cutout.onnx"
                options = f"options = {{ cutout = {cutout.make(source, path, role, family)} }}\n"
            text += entry(role, family, path) + options
        manifest = tmp_path / "models.toml"
        manifest.write_text(text)
        service = Service(
            [_here(model) for model in read(manifest)],
            workers=2,
            max_pixels=4_000_000,
            config=EngineConfig(store=tmp_path / "store"),
        )
        services.append(service)
        await service.load()
        await service.warm()
        return service

    yield make
    for service in services:
        service.close()


def _here(model: Model) -> Model:
    """A model whose file is where its URI says."""
    return replace(model, file=replace(model.file, path=Path(urlsplit(model.file.uri).path)))


async def swap(
    service: Service, options: SwapOptions | None = None, trace: Timings | None = None
) -> SwapResult:
    wanted = SwapRequest((HOPPER,), COLLINS, format="png", options=options or SwapOptions())
    return await service.swap(wanted, trace or Timings())


def changed(result: SwapResult) -> np.ndarray:
    """How much each pixel changed, [H, W]; nothing outside of the boxes, which is checked."""
    before = np.asarray(Image.open(io.BytesIO(sample("collins"))).convert("RGB")).astype(int)
    change = np.abs(np.asarray(Image.open(io.BytesIO(result.image))).astype(int) - before).max(-1)
    outside = change.copy()
    for each in result.faces:
        box = each.face.box
        outside[box.top : box.bottom, box.left : box.right] = 0
    assert not outside.any()
    return change


@pytest.mark.parametrize(
    "families",
    [
        {"detect": "centerface", "identity": "arcface"},
        {"detect": "centerface", "landmarks": "face_mesh_468", "identity": "arcface"},
        {"detect": "centerface", "landmarks": "insightface_2d106", "identity": "arcface"},
        {"detect": "centerface", "landmarks": "fan_68", "identity": "arcface"},
    ],
)
async def test_a_swap_needs_no_landmarks_and_takes_any(families: dict[str, str], opened):
    service = await opened(**families, swap="inswapper_128")
    result = await swap(service)
    assert len(result.faces) == 1
    assert changed(result).max() > 100
    found = await service.faces(COLLINS, Timings())
    assert len(found.faces) == 1
    assert set(service.engines.providers.values()) == {"CPUExecutionProvider"}


async def test_an_enhancer_follows_either_swap_and_can_be_left_out(opened):
    service = await opened(
        detect="centerface",
        landmarks="face_mesh_468",
        identity="face_identity_128",
        enhance="codeformer_512",
    )
    trace = Timings()
    enhanced = await swap(service, trace=trace)
    assert "enhance" in trace.totals()
    some = await swap(service, SwapOptions(enhance=20))
    trace = Timings()
    plain = await swap(service, SwapOptions(enhance=0), trace)
    assert "enhance" not in trace.totals()
    box = plain.faces[0].face.box
    middle = np.s_[box.top + 50 : box.bottom - 50, box.left + 50 : box.right - 50]
    images = [np.asarray(Image.open(io.BytesIO(each.image))).astype(int)[middle] for each in
              (plain, some, enhanced)]  # fmt: skip
    little, much = (np.abs(image - images[0]).mean() for image in images[1:])
    assert 0 < little < much
    assert little == pytest.approx(much / 4, rel=0.2)
    changed(enhanced)


async def test_masks_that_a_replica_has_are_used_and_others_are_refused(opened):
    service = await opened(
        detect="centerface",
        landmarks="face_mesh_468",
        identity="arcface",
        swap="inswapper_128",
        occlusion="xseg",
    )
    whole = changed(await swap(service, SwapOptions(masks=(Mask.BOX,))))
    seen = changed(await swap(service))
    assert seen.sum() < whole.sum()
    with pytest.raises(Problem, match="no model for region"):
        await swap(service, SwapOptions(masks=(Mask.REGION,)))


async def test_boosted_faces_of_several_requests_share_batches(opened):
    service = await opened(detect="centerface", identity="arcface", swap="inswapper_128")
    sizes: list[int] = []

    class Seen(type(service.observer)):  # type: ignore[misc]
        def batched(self, stage: str, size: int) -> None:
            if stage == "swap":
                sizes.append(size)

    service.observer = Seen()
    alone = await swap(service, SwapOptions(boost=256))
    assert sizes == [4]
    results = await asyncio.gather(*(swap(service, SwapOptions(boost=256)) for _ in range(4)))
    assert {each.image for each in results} == {alone.image}
    assert sum(sizes) == 20


async def test_a_request_without_enhancer_and_boost_is_served_without_them(opened):
    service = await opened(
        detect="centerface", identity="arcface", swap="inswapper_128", enhance="gpen_256"
    )
    trace = Timings()
    token = current.set(RequestContext(skip_enhancer=True, smallest_boost=True))
    try:
        less = await swap(service, SwapOptions(boost=512, enhance=100), trace)
    finally:
        current.reset(token)
    assert "enhance" not in trace.totals()
    assert less.image == (await swap(service, SwapOptions(boost=128, enhance=0))).image
    assert less.image != (await swap(service, SwapOptions(boost=512, enhance=0))).image


async def test_models_that_take_cutouts_serve_the_same_swaps(opened, tmp_path: Path):
    families = {"detect": "centerface", "identity": "arcface", "swap": "inswapper_128"}
    results = []
    for cut in ((), ("swap",)):
        service = await opened(*cut, **families)
        several = await asyncio.gather(*(swap(service, SwapOptions(boost=256)) for _ in range(3)))
        assert len({each.image for each in several}) == 1
        results.append(np.asarray(Image.open(io.BytesIO(several[0].image))).astype(int))
    assert np.abs(results[0] - results[1]).max() <= 1
    assert changed(several[0]).max() > 50
