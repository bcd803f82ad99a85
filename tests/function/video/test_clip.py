"""Clips from file to file: what has to stay as it was stays, and the faces do not."""

from __future__ import annotations

import asyncio
import gc
import itertools
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from function.faces.face import Box
from function.images.decode import decode
from function.images.kinds import FileKind
from function.images.picture import Picture
from function.problems import Problem
from function.requests import ClipRequest, SwapRequest
from function.telemetry.timings import Timings
from function.video.editable_frame import EditableFrame
from function.video.facts import Colour, VideoFacts, examine
from tests.function.video.conftest import COLLINS, HOPPER
from tests.function.video.films import (
    SIZE,
    TICK,
    film,
    frames_of,
    scene,
    sound_of,
    times_of,
)


def psnr(a, b):
    return 10 * np.log10(255**2 / np.mean((a.astype(np.float64) - b) ** 2))


def stream_of(path):
    with av.open(str(path)) as file:
        video = file.streams.video[0]
        context = video.codec_context
        tags = context.color_primaries, context.color_trc, context.colorspace, context.color_range
        return context.name, (video.width, video.height), tags, video.average_rate


def changed(before, after):
    """Where two pictures differ by far more than coding explains; (left, top, right, bottom)."""
    rows, columns = np.nonzero(np.abs(before.astype(int) - after).max(-1) > 60)
    return columns.min(), rows.min(), columns.max(), rows.max()


@pytest.fixture(scope="module")
def boxes(pipeline):
    """The boxes of the faces of each frame of the scene."""
    return [
        [face.box for face in pipeline.find(Picture(frame), Timings(), identify=False)]
        for frame in scene()
    ]


def test_every_frame_is_swapped_and_reported(swapped):
    _, result, told = swapped
    assert (result.frames, result.swapped, result.seconds) == (25, 25, 1.0)
    assert (result.size, result.media_type) == (SIZE, "video/mp4")
    assert told[-1] == (25, 25)
    assert told == sorted(told)


def test_no_file_stays_open(swap, plain, tmp_path):
    gc.disable()
    try:
        swap(plain, tmp_path / "out.mp4", "largest")
        opened = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.exists()]
    finally:
        gc.enable()
    assert plain not in opened


def test_frames_times_rate_size_and_tags_stay(plain, swapped):
    out, *_ = swapped
    assert times_of(out) == times_of(plain)
    assert stream_of(out) == stream_of(plain) == ("h264", SIZE, (1, 1, 1, 1), 25)


def test_sound_is_the_same_packet_for_packet(plain, swapped):
    assert sound_of(swapped[0]) == sound_of(plain)
    assert len(sound_of(plain)) > 40


def test_outside_of_the_faces_nothing_changes_but_by_coding(plain, swapped, boxes):
    for before, after, each in zip(frames_of(plain), frames_of(swapped[0]), boxes, strict=True):
        outside = np.ones(before.shape[:2], bool)
        for box in each:
            margin = 0.15 * box.width + 8  # what blocks of the codec smear
            left, top = max(int(box.left - margin), 0), max(int(box.top - margin), 0)
            outside[top : int(box.bottom + margin), left : int(box.right + margin)] = False
        assert outside.mean() > 0.6
        assert psnr(before[outside], after[outside]) > 32
        drift = (after[outside].astype(int) - before[outside]).mean(0)
        assert np.abs(drift).max() < 1.5  # levels of each channel: no cast of colour


def test_faces_are_those_of_the_source(swapped, pipeline):
    hopper, _ = pipeline.portrait(decode(HOPPER.data), Timings())
    for frame in frames_of(swapped[0])[::8]:
        faces = pipeline.find(Picture(np.ascontiguousarray(frame)), Timings(), identify=True)
        assert len(faces) == 2
        left = float(np.linalg.norm(faces[0].embedding - hopper.embedding))
        assert left < 0.56  # Collins herself is 0.7 away


def test_a_swapped_face_moves_as_smoothly_as_the_camera(folder, swap):
    still = [next(iter(scene(1)))] * 8
    target, out = film(folder / "still.mp4", still, sound=None), folder / "still-out.mp4"
    swap(target, out)
    frames = np.array(frames_of(out)).astype(np.float64)
    assert np.abs(np.diff(frames, axis=0)).mean() < 0.5  # levels: no flicker


def test_an_upright_face_is_found_in_a_turned_video(folder, swap, boxes):
    target, out = film(folder / "turned.mp4", list(scene(6)), turned=90), folder / "turned-out.mp4"
    result = swap(target, out)
    assert (result.size, result.swapped) == (SIZE, 6)
    assert stream_of(out)[1] == SIZE[::-1]
    with av.open(str(target)) as a, av.open(str(out)) as b:
        assert [next(x.decode(video=0)).rotation for x in (a, b)] == [90, 90]
    left, top, right, bottom = changed(frames_of(target)[0], frames_of(out)[0])
    assert left > boxes[0][0].left - 9
    assert top > min(box.top for box in boxes[0]) - 9
    assert bottom < max(box.bottom for box in boxes[0]) + 9
    assert right < boxes[0][1].right + 9


@pytest.mark.parametrize(("turn", "mirror"), [*itertools.product(range(4), (False, True))])
def test_what_is_put_back_into_a_frame_lands_where_it_came_from(turn, mirror):
    a, b = [(1, 0), (0, -1), (-1, 0), (0, 1)][turn]
    sign = -1 if mirror else 1
    matrix = (sign * a, b, 0, sign * -b, a, 0, 0, 0, 1)
    display = tuple(value * 65536 for value in matrix)
    facts = VideoFacts(
        FileKind.MP4,
        (64, 32),
        1,
        1.0,
        Fraction(25),
        TICK,
        (0,),
        display,
        Colour(1, 1, 1, False),
        None,
        False,
    )
    coded = np.full((32, 64, 3), 90, np.uint8)
    coded[8:16, 40:56] = (200, 60, 60)
    frame = av.VideoFrame.from_ndarray(coded, format="rgb24").reformat(
        format="yuv420p", dst_colorspace=1
    )
    frame.pts, frame.time_base = 0, TICK
    editable = EditableFrame(frame, facts)
    expected = np.rot90(coded, turn)
    expected = expected[:, ::-1] if mirror else expected
    assert editable.picture.size == facts.upright == expected.shape[1::-1]
    assert np.abs(editable.picture.pixels.astype(int) - expected).mean() < 4
    rows, columns = np.nonzero(expected[..., 0] > 150)
    box = Box(columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    canvas = editable.picture.pixels.copy()
    canvas[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] = (20, 220, 40)
    before = frame.to_ndarray()
    editable.put(canvas, [box])
    same = editable.frame.to_ndarray()[:32] == before[:32]
    for part in (same[:8], same[16:], same[:, :40], same[:, 56:]):
        assert part.all()
    coded[8:16, 40:56] = (20, 220, 40)
    after = editable.frame.to_ndarray(format="rgb24", src_colorspace=1)
    assert np.abs(after.astype(int) - coded).mean() < 4


def test_frames_that_do_not_last_equally_long_keep_their_times(folder, swap):
    steps = [0, 40, 33, 17, 90, 400, 33, 33, 20, 120, 1, 60]
    times = [Fraction(t, 1000) for t in itertools.accumulate(steps)]
    target = film(folder / "vfr.mp4", list(scene(len(times))), times=times)
    out = folder / "vfr-out.mp4"
    assert swap(target, out).frames == len(times)
    assert times_of(out) == times_of(target)


def test_webm_stays_vp9_with_its_opus(folder, swap):
    frames, tick = list(scene(8)), Fraction(1, 1000)
    target = film(folder / "a.webm", frames, codec="libvpx-vp9", sound="libopus", tick=tick)
    out = folder / "out.webm"
    result = swap(target, out)
    assert (result.media_type, result.swapped) == ("video/webm", 8)
    assert stream_of(out)[:2] == ("vp9", SIZE)
    assert times_of(out) == times_of(target)
    assert sound_of(out) == sound_of(target)
    assert psnr(np.array(frames_of(target)), np.array(frames_of(out))) > 28


def test_full_range_and_another_matrix_stay(folder, swap):
    target = film(folder / "full.mp4", list(scene(3)), tags=(5, 6, 5, 2), sound=None)
    out = folder / "full-out.mp4"
    swap(target, out, "index:0")
    assert stream_of(out)[2] == (5, 6, 5, 2)
    assert psnr(frames_of(target)[0][:, 260:], frames_of(out)[0][:, 260:]) > 32


def test_only_the_faces_that_are_meant_are_swapped(folder, swap, plain):
    out = folder / "right.mp4"
    swap(plain, out, "index:1", source=COLLINS)
    for before, after in list(zip(frames_of(plain), frames_of(out), strict=True))[::8]:
        assert psnr(before[:, :150], after[:, :150]) > 32
        assert np.abs(before[:, 200:].astype(int) - after[:, 200:]).max() > 80


def test_the_person_on_a_reference_photo_is_followed(folder, swap, plain):
    out = folder / "like.mp4"
    result = swap(plain, out, "like", likes=(COLLINS,))
    assert result.swapped == 25
    for before, after in list(zip(frames_of(plain), frames_of(out), strict=True))[::8]:
        assert changed(before, after)[2] < 150
        assert psnr(before[:, 200:], after[:, 200:]) > 32


@pytest.mark.parametrize("way", ["0=h,1=c", "x=h,1=c"])
def test_each_person_gets_the_face_that_is_put_onto_that_person(folder, swap, plain, way):
    people = tuple(replace(each, name=n) for each, n in ((HOPPER, "h"), (COLLINS, "c")))
    likes = (replace(COLLINS, name="x"),) if "x" in way else ()
    each, once = folder / "each.mp4", folder / "once.mp4"
    result = swap(plain, each, way, source=people, likes=likes)
    assert (result.swapped, result.most_faces) == (25, 2)
    swap(plain, once, "index:0", source=HOPPER)
    for mapped, alone, before in list(
        zip(frames_of(each), frames_of(once), frames_of(plain), strict=True)
    )[::8]:
        assert np.mean((mapped[:, :150].astype(int) - alone[:, :150]) ** 2) < 40  # PSNR of 32
        assert np.abs(before[:, 200:].astype(int) - mapped[:, 200:]).max() > 80


def test_a_place_that_is_not_in_the_first_frame_is_told(folder, swap, plain):
    with pytest.raises(Problem, match="no face 2") as raised:
        swap(plain, folder / "none.mp4", "2=h", source=(replace(HOPPER, name="h"),))
    assert raised.value.code == "no_such_face"


def test_quicktime_can_become_mp4_and_matroska(folder, swap):
    target = film(folder / "a.mov", list(scene(3)))
    for name, kind in (("m.mp4", FileKind.MP4), ("m.mkv", FileKind.MKV)):
        result = swap(target, folder / name, kind=kind)
        assert result.media_type == kind
        assert [packet for _, packet in sound_of(folder / name)] == [
            packet for _, packet in sound_of(target)
        ]


def test_sound_that_does_not_fit_into_the_wanted_kind_is_named(folder, swap):
    target = film(folder / "pcm.mkv", list(scene(2)), sound="libopus")
    with pytest.raises(Problem, match="opus") as raised:
        swap(target, folder / "pcm.mov", kind=FileKind.MOV)
    assert not swap.told  # nothing was computed in vain
    assert raised.value.code == "bad_value"
    assert not (folder / "pcm.mov").exists()


def test_a_clip_of_nobody_is_refused(folder, swap):
    blank = [np.full((64, 96, 3), 120, np.uint8)] * 4
    target = film(folder / "blank.mp4", blank, sound=None)
    with pytest.raises(Problem, match="No face"):
        swap(target, folder / "no.mp4")
    assert not (folder / "no.mp4").exists()


def test_a_cancelled_clip_leaves_nothing_and_stops(plain, folder, swap):
    out = folder / "cancelled.mp4"

    async def cancelled():
        begun = asyncio.Event()
        wanted = ClipRequest((HOPPER,), plain, out)
        work = swap.service.clip(wanted, Timings(), progress=lambda *_: begun.set())
        task = asyncio.create_task(work)
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    swap.run(cancelled())
    assert swap.service.in_work == 0
    assert not [*folder.glob("*cancelled*"), *folder.glob(".cancelled*")]
    target = film(folder / "next.mp4", list(scene(2)), sound=None)
    assert swap(target, folder / "next-out.mp4").swapped == 2  # nothing holds it up


def test_photos_are_swapped_while_a_clip_is_in_work(plain, folder, swap):
    async def both():
        begun = asyncio.Event()
        wanted = ClipRequest((HOPPER,), plain, folder / "beside.mp4")
        clip = asyncio.create_task(
            swap.service.clip(wanted, Timings(), progress=lambda *_: begun.set())
        )
        await begun.wait()
        await swap.service.swap(SwapRequest((HOPPER,), COLLINS), Timings())
        assert not clip.done()
        await clip

    swap.run(both())


@pytest.mark.parametrize(
    ("setting", "value", "code"),
    [
        ("seconds", 0.5, "clip_too_long"),
        ("frames", 24, "clip_too_long"),
        ("size", 2048, "clip_too_long"),
        ("pixels", 384 * 216 - 1, "too_many_pixels"),
    ],
)
def test_what_is_too_much_is_refused_before_it_is_decoded(
    setting, value, code, plain, folder, swap, monkeypatch
):
    limits = replace(swap.service.clips, **{setting: value})
    with pytest.raises(Problem) as raised:
        examine(plain, FileKind.MP4, limits)
    assert raised.value.code == code
    assert {"limit", "value"} <= raised.value.extra.keys()
