"""The service: whole swaps on a few threads, bounded, cancellable, the same in a crowd."""

from __future__ import annotations

import asyncio
import io
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from function.faces.select import Selection
from function.problems import Problem
from function.quality_warning import QualityWarning
from function.requests import SwapRequest, Upload
from function.service.service import Service, sample
from function.telemetry.timings import Timings
from warmup.models.manifest import read

MANIFEST = read(Path(str(files("function") / "models" / "models.toml")))


def upload(image: Image.Image, field: str) -> Upload:
    out = io.BytesIO()
    image.save(out, "PNG")
    return Upload(out.getvalue(), field)


def photo(name: str) -> Image.Image:
    return Image.open(io.BytesIO(sample(name))).convert("RGB")


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)))


HOPPER = Upload(sample("hopper"), "source")
COLLINS = Upload(sample("collins"), "target")
SWAP = SwapRequest((HOPPER,), COLLINS, format="png")


@pytest.fixture
async def service():
    service = Service(MANIFEST, workers=2, max_pixels=4_000_000)
    await service.load()
    yield service
    service.close()


async def test_a_swap_changes_the_face_and_nothing_else(service):
    result = await service.swap(SWAP, Timings())
    before, after = np.asarray(photo("collins")), pixels(result.image)
    box = result.faces[0].face.box
    inside = np.zeros(before.shape[:2], bool)
    inside[box.top : box.bottom, box.left : box.right] = True
    assert (after[~inside] == before[~inside]).all()
    assert (after[inside] != before[inside]).any(axis=-1).mean() > 0.3
    assert (result.media_type, result.size) == ("image/png", (512, 512))


async def test_the_answer_says_how_like_the_source_the_face_became(service):
    face = (await service.swap(SWAP, Timings())).faces[0]
    assert face.before == pytest.approx(0.667, abs=0.02)
    assert face.after < 0.45
    assert face.kept > face.after + 0.1


async def test_every_stage_is_traced(service):
    trace = Timings()
    await service.swap(SWAP, trace)
    totals = trace.totals()
    assert list(totals) == sorted(totals, key=list(totals).index)
    assert set(totals) == {
        "queue", "decode", "detect", "landmarks", "identity", "swap", "judge", "encode",
        "gate", "mark", "sign", "swap.warp", "swap.light", "swap.finish", "swap.blend",
    }  # fmt: skip
    assert all(span.ms >= 0 and span.start_ms >= 0 for span in trace.spans)


async def test_providers_are_read_from_the_sessions(service):
    assert service.engines.providers == dict.fromkeys(
        ("detect", "landmarks", "identity", "gate"), "CPUExecutionProvider"
    )


async def test_swaps_of_several_faces_accumulate_on_one_canvas(service):
    both = Image.new("RGB", (1112, 600))
    both.paste(photo("collins"), (0, 0))
    both.paste(photo("hopper"), (600, 0))
    result = await service.swap(
        SwapRequest((HOPPER,), upload(both, "target"), format="png"), Timings()
    )
    assert [face.face.index for face in result.faces] == [0, 1]
    changed = (pixels(result.image) != np.asarray(both)).any(axis=-1)
    for swapped in result.faces:
        box = swapped.face.box
        assert changed[box.top : box.bottom, box.left : box.right].mean() > 0.3


async def test_only_the_chosen_face_is_swapped(service):
    both = Image.new("RGB", (1112, 600))
    both.paste(photo("collins"), (0, 0))
    both.paste(photo("hopper"), (600, 0))
    target = upload(both, "target")
    like = upload(photo("collins"), "like")
    for faces, likes, index in (("index:1", (), 1), ("like", (like,), 0)):
        wanted = SwapRequest((HOPPER,), target, Selection.parse(faces), likes, format="png")
        result = await service.swap(wanted, Timings())
        assert [face.face.index for face in result.faces] == [index]


async def test_several_source_photos_of_one_person_are_averaged(service):
    flipped = upload(photo("hopper").transpose(Image.Transpose.FLIP_LEFT_RIGHT), "source")
    result = await service.swap(SwapRequest((HOPPER, flipped), COLLINS), Timings())
    assert QualityWarning.SOURCES_DIFFER not in result.warnings
    assert result.faces[0].after < 0.5


async def test_source_photos_of_two_people_are_warned_of(service):
    result = await service.swap(
        SwapRequest((HOPPER, upload(photo("collins"), "source")), COLLINS), Timings()
    )
    assert QualityWarning.SOURCES_DIFFER in result.warnings


async def test_a_source_photo_with_two_faces_is_warned_of(service):
    both = Image.new("RGB", (1112, 600))
    both.paste(photo("collins"), (0, 0))
    both.paste(photo("hopper"), (600, 0))
    result = await service.swap(SwapRequest((upload(both, "source"),), COLLINS), Timings())
    assert QualityWarning.SEVERAL_SOURCE_FACES in result.warnings


async def test_a_gray_target_stays_gray(service):
    gray = upload(photo("collins").convert("L"), "target")
    result = await service.swap(SwapRequest((HOPPER,), gray, format="png"), Timings())
    assert Image.open(io.BytesIO(result.image)).mode == "L"


async def test_alpha_is_kept_where_the_format_has_it_and_flattened_with_a_word_where_not(service):
    clear = photo("collins").convert("RGBA")
    alpha = np.full((512, 512), 255, np.uint8)
    alpha[:40] = 7
    clear.putalpha(Image.fromarray(alpha))
    target = upload(clear, "target")
    kept = await service.swap(SwapRequest((HOPPER,), target, format="png"), Timings())
    flat = await service.swap(SwapRequest((HOPPER,), target, format="jpeg"), Timings())
    assert (pixels(kept.image)[..., 3] == alpha).all()
    assert QualityWarning.ALPHA_FLATTENED not in kept.warnings
    assert QualityWarning.ALPHA_FLATTENED in flat.warnings


@pytest.mark.parametrize("field", ["source", "target", "like"])
async def test_the_photo_without_a_face_is_named(service, field):
    empty = upload(Image.new("RGB", (300, 300), (90, 120, 60)), field)
    wanted = SwapRequest(
        (empty if field == "source" else HOPPER,),
        empty if field == "target" else COLLINS,
        faces=Selection.parse("like") if field == "like" else Selection(),
        likes=(empty,) if field == "like" else (),
    )
    with pytest.raises(Problem) as caught:
        await service.swap(wanted, Timings())
    assert caught.value.code == "no_face"
    assert caught.value.extra["image"] == field


async def test_of_several_bad_images_the_first_in_order_is_reported(service):
    bad = SwapRequest((Upload(b"not an image", "source"),), Upload(b"neither", "target"))
    for _ in range(5):
        with pytest.raises(Problem) as caught:
            await service.swap(bad, Timings())
        assert caught.value.extra["image"] == "target"


async def test_too_many_pixels_are_refused_with_the_limit(service):
    big = upload(Image.new("RGB", (2100, 2000)), "target")
    with pytest.raises(Problem) as caught:
        await service.swap(SwapRequest((HOPPER,), big), Timings())
    assert caught.value.code == "too_many_pixels"


async def test_faces_are_found_without_being_identified(service):
    trace = Timings()
    found = await service.faces(COLLINS, trace)
    assert [face.embedding for face in found.faces] == [None]
    assert "identity" not in trace.totals()


async def test_a_photo_without_faces_is_no_problem_when_faces_are_listed(service):
    found = await service.faces(upload(Image.new("RGB", (64, 48)), "image"), Timings())
    assert (found.faces, found.size) == ((), (64, 48))


async def test_a_cancelled_swap_frees_its_place(service):
    swaps = [asyncio.create_task(service.swap(SWAP, Timings())) for _ in range(20)]
    await asyncio.sleep(0.05)
    assert service.in_work == 4
    for swap in swaps:
        swap.cancel()
    await asyncio.gather(*swaps, return_exceptions=True)
    assert service.in_work == 0
    await asyncio.wait_for(service.swap(SWAP, Timings()), 30)


async def test_a_failed_swap_frees_its_place(service):
    bad = SwapRequest((HOPPER,), Upload(b"nothing", "target"))
    await asyncio.gather(*(service.swap(bad, Timings()) for _ in range(20)), return_exceptions=True)
    assert service.in_work == 0


async def test_a_swap_is_the_same_alone_and_in_a_crowd(service):
    orders = [SWAP, SwapRequest((COLLINS,), HOPPER, format="png")] * 6
    alone = [(await service.swap(wanted, Timings())).image for wanted in orders[:2]] * 6
    crowd = await asyncio.gather(*(service.swap(wanted, Timings()) for wanted in orders))
    assert [result.image for result in crowd] == alone
