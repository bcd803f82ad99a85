"""Animated GIF and WebP: times, loops and transparency stay, the faces do not."""

from __future__ import annotations

import asyncio
import io

import numpy as np
import pytest
from PIL import Image

from function.images.frames import Frames
from function.images.kinds import FileKind
from function.problems import Problem
from function.requests import SwapRequest, Upload
from function.telemetry.timings import Timings
from function.video import animation as animations
from function.video.animation import Animation
from function.video.limits import ClipLimits
from tests.function.images.make import gif_of
from tests.function.video.conftest import HOPPER
from tests.function.video.films import animation, scene

TIMES = [40, 50, 200, 70, 80, 1000]


@pytest.fixture(scope="module")
def frames():
    return list(scene(len(TIMES), (384, 216)))


def shown(data):
    """Each frame as uint8 [H, W, 4], the durations, and how often it is shown."""
    with Image.open(io.BytesIO(data)) as image:
        every, times = [], []
        for k in range(image.n_frames):
            image.seek(k)
            every.append(np.asarray(image.convert("RGBA")))
            times.append(image.info["duration"])
        return every, times, image.info.get("loop")


@pytest.fixture(scope="module")
def swap_bytes(swap):
    def run(data, **more):
        wanted = SwapRequest((HOPPER,), Upload(data, "target"), **more)
        return swap.run(swap.service.swap(wanted, Timings()))

    return run


@pytest.fixture(scope="module", params=["gif", "webp"])
def before(request, frames, folder):
    path = folder / f"anim.{request.param}"
    return animation(path, frames, duration=TIMES, loop=3, quality=95).read_bytes()


def test_times_and_loops_stay_and_every_frame_is_swapped(before, swap_bytes):
    result = swap_bytes(before)
    old, times, loop = shown(before)
    new, new_times, new_loop = shown(result.image)
    assert (new_times, new_loop) == (times, loop) == (TIMES, 3)
    assert result.media_type.startswith("image/")
    assert len(result.faces) == 2
    for a, b in zip(old, new, strict=True):
        assert np.abs(a[..., :3].astype(int) - b[..., :3])[:, :150].max() > 60
        assert (b[..., 3] == 255).all()


def test_outside_of_the_faces_a_gif_keeps_every_pixel(frames, folder, swap_bytes):
    data = animation(folder / "exact.gif", frames, duration=40).read_bytes()
    old, *_ = shown(data)
    new, *_ = shown(swap_bytes(data).image)
    for a, b in zip(old, new, strict=True):
        different = (a != b).any(-1)
        assert 0.005 < different.mean() < 0.12
        assert not different[150:].any()
        assert not different[:, 125:235].any()


def test_transparency_stays(frames, folder, swap_bytes):
    hole = []
    for k, frame in enumerate(frames):
        alpha = np.full(frame.shape[:2], 255, np.uint8)
        alpha[160:, 10 * k : 10 * k + 90] = 0
        hole.append(np.dstack([frame, alpha]))
    for name, more in (("clear.gif", {"disposal": 2}), ("clear.webp", {"lossless": True})):
        data = animation(folder / name, hole, duration=50, **more).read_bytes()
        old, *_ = shown(data)
        new, *_ = shown(swap_bytes(data).image)
        for a, b in zip(old, new, strict=True):
            assert np.array_equal(a[..., 3] > 127, b[..., 3] > 127)


def test_a_gif_that_is_shown_once_is_shown_once(frames, folder, swap_bytes):
    data = animation(folder / "once.gif", frames[:2], duration=40).read_bytes()
    assert shown(data)[2] is shown(swap_bytes(data).image)[2] is None


def test_a_gif_of_more_colours_than_a_palette_has_is_swapped(frames, folder, swap_bytes):
    """Frames that cover a part only, each with a palette of its own."""
    first = Image.fromarray(frames[0]).quantize(256)
    second = Image.fromarray(frames[0]).quantize(256, Image.Quantize.FASTOCTREE)
    out = io.BytesIO()
    half = second.crop((0, 0, 384, 100))
    whole = first.copy().convert("RGB")
    whole.paste(half.convert("RGB"), (0, 0))
    first.save(out, "GIF", save_all=True, append_images=[whole.quantize(256)], duration=40)
    result = swap_bytes(out.getvalue())
    assert len(shown(result.image)[0]) == 2


def test_a_still_format_takes_the_first_frame_and_says_so(before, swap_bytes):
    result = swap_bytes(before, format="png")
    assert result.media_type == "image/png"
    assert "first_frame" in result.warnings


def test_an_animation_can_become_webp(frames, folder, swap_bytes):
    data = animation(folder / "to.gif", frames, duration=TIMES, loop=0).read_bytes()
    result = swap_bytes(data, format="webp")
    assert result.media_type == "image/webp"
    assert shown(result.image)[1:] == (TIMES, 0)


def test_from_file_to_file(frames, folder, swap):
    target = animation(folder / "file.gif", frames, duration=TIMES)
    result = swap(target, folder / "file-out.webp", kind=FileKind.WEBP)
    assert (result.frames, result.swapped, result.media_type) == (6, 6, "image/webp")
    assert result.seconds == sum(TIMES) / 1000
    assert shown((folder / "file-out.webp").read_bytes())[1] == TIMES


def test_an_animation_of_nobody_is_refused(folder, swap_bytes):
    blank = [np.full((32, 32, 3), k, np.uint8) for k in (10, 90)]
    data = animation(folder / "nobody.gif", blank, duration=40).read_bytes()
    with pytest.raises(Problem) as raised:
        swap_bytes(data)
    assert raised.value.code == "no_face"


def test_one_face_of_an_animation(frames, folder, swap_bytes):
    from function.faces.select import Selection

    data = animation(folder / "one.gif", frames, duration=40).read_bytes()
    old, *_ = shown(data)
    new, *_ = shown(swap_bytes(data, faces=Selection.parse("largest")).image)
    assert not (old[0] != new[0])[:, :200].any()


def pictures_of(data, kind=FileKind.GIF, limits=None):
    """Each frame of an animation as it is read."""
    reader, found = Animation(data, kind, limits or ClipLimits()), []
    while (frame := reader.read()) is not None:
        found.append(frame.picture)
    return found


@pytest.mark.parametrize("number", [1, 2])
def test_a_frame_far_outside_of_the_screen_is_refused_before_anything_is_decoded(number):
    small = [Image.new("RGB", (30, 20), "red")] * 3
    with pytest.raises(Problem) as raised:
        Animation(gif_of(small, places={number: (12_000, 12_000)}), FileKind.GIF, ClipLimits())
    assert raised.value.code == "too_many_pixels"


def test_frames_that_reach_a_little_over_the_screen_are_shown_as_far_as_it_goes():
    large = [Image.new("RGB", (30, 20), colour) for colour in ("red", "lime", "blue")]
    found = pictures_of(gif_of(large, places={1: (20, 5), 2: (100, 100)}))
    assert [each.size for each in found] == [(30, 20)] * 3
    assert found[0].pixels[10, 10].tolist() == found[1].pixels[10, 10].tolist() == [255, 0, 0]
    assert found[1].pixels[10, 25].tolist() == found[2].pixels[10, 25].tolist() == [0, 255, 0]


def test_all_frames_together_count_with_the_canvas_that_the_decoder_needs():
    small = [Image.new("RGB", (30, 20), "red")] * 40
    with pytest.raises(Problem) as raised:
        Animation(gif_of(small, places={30: (2000, 1500)}), FileKind.GIF, ClipLimits())
    assert raised.value.code == "clip_too_long"
    assert raised.value.extra["value"] == 40 * 2030 * 1520


@pytest.mark.parametrize("number", [0, 1])
def test_a_canvas_that_grows_beyond_what_was_counted_is_not_decoded(number, monkeypatch):
    """As if who counts and who decodes did not read the same."""
    monkeypatch.setattr(animations, "frames", lambda data: Frames(2, (30, 20), (30, 20)))
    data = gif_of([Image.new("RGB", (30, 20), "red")] * 2, places={number: (3000, 3000)})
    with pytest.raises(Problem) as raised:
        pictures_of(data)
    assert raised.value.code == "bad_clip"


@pytest.mark.parametrize("name", ["equal.gif", "equal.webp"])
def test_frames_that_are_equal_all_stay_with_their_times(frames, name, folder, swap_bytes):
    """A face, a title for a while, the face again."""
    title = np.full_like(frames[0], 60)
    views = [Image.fromarray(each) for each in (frames[0], title, title, title, frames[1])]
    times = [100, 200, 300, 400, 500]
    if name.endswith("gif"):
        data = gif_of(views, times=[time // 10 for time in times])
    else:
        file = animations.WebpFile(views[0].size, 0, 95)
        for view, time in zip(views, times, strict=True):
            file.add(view, time)
        data = file.finish()
    assert shown(data)[1] == times
    assert shown(swap_bytes(data).image)[1] == times


def test_an_animation_that_nobody_waits_for_any_more_is_not_decoded_further(
    frames, folder, swap, monkeypatch
):
    frames_read, read = [], Animation.read

    def counted(animation):
        frames_read.append(animation)
        return read(animation)

    monkeypatch.setattr(Animation, "read", counted)
    data = animation(folder / "gone.gif", list(scene(40, (192, 108))), duration=40).read_bytes()

    async def leave():
        wanted = SwapRequest((HOPPER,), Upload(data, "target"))
        task = asyncio.create_task(swap.service.swap(wanted, Timings()))
        while len(frames_read) < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        while swap.service.busy:
            await asyncio.sleep(0.01)
        before = len(frames_read)
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert len(frames_read) == before < 40

    swap.run(leave())
