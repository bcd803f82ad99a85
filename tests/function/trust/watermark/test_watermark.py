"""Marks in real photos: read after what happens to pictures, and nothing where there is none."""

from __future__ import annotations

import io
from dataclasses import replace

import cv2
import numpy as np
import pytest
from PIL import Image

from function.faces.face import Box
from function.trust.watermark.carriers import rings
from function.trust.watermark.keys import PUBLIC, WatermarkKey, WatermarkKeys
from function.trust.watermark.policy import MarkPlan, WhichMarks
from function.trust.watermark.watermark import MarkPlace, Watermark

KEY, OLD = WatermarkKey(7, b"a key of 16 byte"), WatermarkKey(6, b"an old key, 16 b")
PAYLOAD = KEY.payload("a request")
MARKER = Watermark(WatermarkKeys(KEY))


def marked(portrait, marker=MARKER, payload=PAYLOAD, which=WhichMarks.FACES, **options):
    canvas = portrait.pixels.copy()
    marker.mark(canvas, [portrait.face], payload, which, **options)
    return canvas


def saved(pixels, kind="JPEG", **options):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind, **options)
    return np.array(Image.open(out).convert("RGB"))


def scaled(pixels, factor):
    size = tuple(round(factor * side) for side in pixels.shape[1::-1])
    return np.array(Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC))


ATTACKS = {
    "nothing": lambda pixels: pixels,
    "JPEG": lambda pixels: saved(pixels, quality=70),
    "WebP": lambda pixels: saved(pixels, "WEBP", quality=75),
    "half": lambda pixels: saved(scaled(pixels, 0.5), quality=85),
    "larger": lambda pixels: saved(scaled(pixels, 1.3), quality=80),
    "mirror": lambda pixels: saved(np.ascontiguousarray(pixels[:, ::-1]), quality=85),
    "cropped": lambda pixels: saved(pixels[29:, 43:-11], quality=85),
    "brighter": lambda pixels: saved(cv2.convertScaleAbs(pixels, alpha=1.15, beta=9), quality=85),
}


@pytest.mark.parametrize(
    ("name", "attack"),
    [
        ("collins", "nothing"),
        ("collins", "JPEG"),
        ("collins", "WebP"),
        ("collins", "half"),
        ("collins", "mirror"),
        ("hopper", "larger"),
        ("hopper", "JPEG"),
        ("hopper", "cropped"),
        ("hopper", "brighter"),
    ],
)
def test_a_mark_is_read_wherever_the_face_is_found_again(name, attack, request, faces_of):
    seen = ATTACKS[attack](marked(request.getfixturevalue(name)))
    (reading,) = MARKER.read_faces(seen, faces_of(seen))
    assert reading.payload == PAYLOAD
    assert (reading.key_id, reading.place) == (7, MarkPlace.FACE)
    assert reading.mirrored == (attack == "mirror")
    assert reading.text == f"{PAYLOAD:012x}"


def test_a_mark_changes_little_and_only_inside_the_box(collins, hopper):
    for portrait in (collins, hopper):
        canvas, box = marked(portrait), portrait.face.box
        changed = np.argwhere((canvas != portrait.pixels).any(2))
        assert changed.min(0)[1] >= box.left
        assert changed.min(0)[0] >= box.top
        assert changed.max(0)[1] < box.right
        assert changed.max(0)[0] < box.bottom
        inside = slice(int(box.top), int(box.bottom)), slice(int(box.left), int(box.right))
        assert cv2.PSNR(canvas[inside], portrait.pixels[inside]) > 40


def test_a_narrower_box_is_kept_as_well(hopper):
    box = Box(180, 120, 250, 200)
    canvas = hopper.pixels.copy()
    MARKER.mark(canvas, [replace(hopper.face, box=box)], PAYLOAD, WhichMarks.FACES)
    rows, columns = np.nonzero((canvas != hopper.pixels).any(2))
    assert (rows.min() >= 120, rows.max() < 200) == (True, True)
    assert (columns.min() >= 180, columns.max() < 250) == (True, True)


def test_a_gray_photo_stays_gray(hopper):
    gray = cv2.cvtColor(hopper.pixels, cv2.COLOR_RGB2GRAY)
    portrait = replace(hopper, pixels=np.repeat(gray[..., None], 3, 2))
    for which in (WhichMarks.FACES, WhichMarks.ALWAYS):
        canvas = marked(portrait, which=which)
        assert (canvas != portrait.pixels).any()
        assert (canvas == canvas[..., :1]).all()


def test_an_unmarked_picture_says_nothing(collins, hopper):
    for portrait in (collins, hopper):
        assert MARKER.read_faces(portrait.pixels, [portrait.face]) == []
        assert MARKER.read_picture(portrait.pixels) is None


@pytest.mark.parametrize("level", [0, 128, 255])
def test_a_face_without_any_detail_is_marked_as_well(level, hopper):
    flat = replace(hopper, pixels=np.full_like(hopper.pixels, level))
    canvas = marked(flat, which=WhichMarks.ALWAYS)
    assert [each.payload for each in MARKER.read_faces(canvas, [hopper.face])] == [PAYLOAD]
    assert MARKER.read_picture(canvas) is not None


def test_another_key_reads_nothing(collins):
    stranger = Watermark(WatermarkKeys(WatermarkKey(7, b"the wrong secret")))
    assert stranger.read_faces(marked(collins), [collins.face]) == []


def test_what_an_older_or_the_public_key_marked_is_still_read(collins):
    rotated = Watermark(WatermarkKeys(KEY, (OLD,)))
    for key in (OLD, PUBLIC):
        payload = key.payload("before")
        canvas = marked(collins, Watermark(WatermarkKeys(key)), payload)
        (reading,) = rotated.read_faces(canvas, [collins.face])
        assert (reading.payload, reading.key_id) == (payload, key.id)


def test_a_payload_of_another_key_is_not_believed(collins):
    canvas = marked(collins, payload=OLD.payload("a request"))
    assert MARKER.read_faces(canvas, [collins.face]) == []


def test_the_whole_picture_is_marked_for_a_small_face(hopper):
    photo = scaled(hopper.pixels, 1.6)
    small = replace(hopper.face, detection=replace(hopper.face.detection, box=Box(0, 0, 80, 90)))
    canvas = photo.copy()
    done = MARKER.mark(canvas, [small], PAYLOAD, WhichMarks.SMALL)
    assert done == MarkPlan((False,), picture=True)
    assert cv2.PSNR(canvas, photo) > 42
    for seen in (saved(canvas, quality=75), saved(scaled(canvas, 0.7)[31:, 17:], quality=85)):
        reading = MARKER.read_picture(seen)
        assert reading is not None
        assert (reading.payload, reading.place) == (PAYLOAD, MarkPlace.PICTURE)
    mirrored = MARKER.read_picture(np.ascontiguousarray(canvas[:, ::-1]))
    assert mirrored is not None
    assert (mirrored.payload, mirrored.mirrored) == (PAYLOAD, True)


def test_frames_that_say_too_little_alone_are_read_together(hopper):
    random = np.random.default_rng(4)
    steady = marked(hopper, steady=True)

    def frame(number):
        shift = random.integers(0, 8, 2)
        part = np.ascontiguousarray(steady[shift[0] :, shift[1] :])
        noise = random.normal(0, 18, part.shape[:2])[..., None]
        seen = np.clip(part + noise, 0, 255).astype(np.uint8)
        five = hopper.face.five - shift[::-1].astype(np.float32)
        return seen, [replace(hopper.face, five=five)]

    frames = [frame(number) for number in range(16)]
    alone = [MARKER.read_faces(*each) for each in frames[:4]]
    together = MARKER.read_frames(frames)
    assert alone.count([]) >= 2
    assert together is not None
    assert (together.payload, together.place) == (PAYLOAD, MarkPlace.CLIP)


def test_frames_without_a_mark_say_nothing(collins):
    assert MARKER.read_frames([(collins.pixels, [collins.face])] * 4) is None
    assert MARKER.read_frames([]) is None


def test_a_face_that_is_cut_off_is_marked_and_read(hopper, faces_of):
    box = hopper.face.detection.box
    part = np.ascontiguousarray(hopper.pixels[:, int(box.left) + 12 :])
    (face,) = faces_of(part)
    canvas = part.copy()
    MARKER.mark(canvas, [face], PAYLOAD, WhichMarks.FACES)
    seen = saved(canvas, quality=85)
    assert [each.payload for each in MARKER.read_faces(seen, faces_of(seen))] == [PAYLOAD]


def test_preparing_unfolds_the_key():
    key = WatermarkKey(99, b"not used before!")
    Watermark(WatermarkKeys(key)).prepare()
    before = rings.cache_info().misses
    rings(key.secret, "face")
    assert rings.cache_info().misses == before
