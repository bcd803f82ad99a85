"""Faces are followed from frame to frame: nobody is lost, nobody is mixed up, nothing trembles."""

from __future__ import annotations

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest

from function.images.picture import Picture
from function.telemetry.timings import Timings
from function.video.smooth import Smooth
from function.video.track import TargetPerson, Targets, Tracker
from tests.function.video.films import scene


@pytest.fixture
def tracker(pipeline):
    return Tracker(pipeline, Targets(), 25.0)


def follow(tracker, frames, begin=0):
    """The middles of the faces in each frame, and the trace."""
    trace = Timings()
    middles = [
        [
            face.mesh[:, :2].mean(0)
            for face in tracker.follow(Picture(frame), (begin + k) / 25, trace)
        ]
        for k, frame in enumerate(frames)
    ]
    return middles, trace


def identity(pipeline, frame, left):
    faces = pipeline.find(Picture(frame), Timings(), identify=True)
    return faces[0 if left else -1].embedding


def test_both_are_followed_through_every_frame(tracker):
    middles, _ = follow(tracker, scene(40, speed=2.0))
    assert all(len(each) == 2 for each in middles)
    steps = np.abs(np.diff(np.array(middles), axis=0))
    assert steps.max() < 12


def test_faces_are_searched_for_now_and_then_only(tracker):
    _, trace = follow(tracker, scene(40))
    looks = sum(span.stage == "detect" for span in trace.spans)
    assert looks <= 7  # the first, tile by tile perhaps, and one for every eight frames
    fits = sum(span.stage == "landmarks" for span in trace.spans)
    assert fits <= 2 * 40 + 8


def test_the_points_are_where_finding_faces_anew_puts_them(tracker, pipeline):
    *_, last = frames = list(scene(20))
    middles, _ = follow(tracker, frames)
    found = pipeline.find(Picture(last), Timings(), identify=False)
    for followed, face in zip(middles[-1], found, strict=True):
        assert np.linalg.norm(followed - face.mesh[:, :2].mean(0)) < 2.5


def test_a_cut_is_seen_at_once(tracker):
    one = list(scene(6))
    middles, _ = follow(tracker, [*one, *(frame[:, ::-1].copy() for frame in one)])
    assert all(len(each) == 2 for each in middles)
    size = one[0].shape[1]
    assert abs(middles[6][0][0] - (size - middles[5][1][0])) < 8


def test_nobody_is_followed_into_an_empty_picture(tracker):
    frames = list(scene(3))
    blank = np.full_like(frames[0], 127)
    middles, _ = follow(tracker, [*frames, blank, blank])
    assert [len(each) for each in middles] == [2, 2, 2, 0, 0]


def test_a_face_that_was_covered_is_found_again_and_is_the_same_person(pipeline):
    frames = list(scene(30))
    collins = identity(pipeline, frames[0], left=True)
    tracker = Tracker(pipeline, Targets((TargetPerson(collins),)), 25.0)
    covered = [frame.copy() for frame in frames]
    for frame in covered[10:14]:
        frame[:, :160] = 127
    middles, _ = follow(tracker, covered)
    assert {len(each) for each in middles[:10]} == {1}
    assert {len(each) for each in middles[11:14]} == {0}
    assert {len(each) for each in middles[22:]} == {1}
    assert all(each[0][0] < 160 for each in middles if each)


def test_only_the_person_who_is_meant_is_given_in_any_frame(pipeline):
    frames = list(scene(25))
    hopper = identity(pipeline, frames[0], left=False)
    middles, _ = follow(Tracker(pipeline, Targets((TargetPerson(hopper),)), 25.0), frames)
    assert all(len(each) == 1 and each[0][0] > 200 for each in middles)


def test_another_tracker_goes_on_exactly_where_one_was(pipeline, tracker):
    frames = list(scene(20))
    whole, _ = follow(tracker, frames)
    first = Tracker(pipeline, Targets(), 25.0)
    follow(first, frames[:9])
    second = Tracker(pipeline, Targets(), 25.0)
    second.resume(json.loads(json.dumps(first.state())))
    rest, _ = follow(second, frames[9:], begin=9)
    assert np.array_equal(np.array(rest), np.array(whole[9:]))


def test_points_of_a_face_that_keeps_still_tremble_less(tracker, pipeline):
    odd = np.random.default_rng(0)
    still = next(iter(scene(1)))
    noisy = [
        np.clip(still + odd.normal(0, 5, still.shape), 0, 255).astype(np.uint8) for _ in range(30)
    ]
    smooth, raw = [], []
    for k, frame in enumerate(noisy):
        smooth.append([face.mesh for face in tracker.follow(Picture(frame), k / 25, Timings())])
        raw.append([track.points.copy() for track in tracker._tracks])
    tremble = [float(np.std(np.diff(np.array(each)[10:], axis=0))) for each in (raw, smooth)]
    assert tremble[1] < tremble[0] / 2


def test_smoothing_is_not_late_for_a_face_that_moves():
    face = np.random.default_rng(1).normal(0, 30, (468, 3)).astype(np.float32)
    smooth = Smooth(face.copy(), 0.0)
    for k in range(1, 30):
        moved = face + np.array([3 * k, 0, 0], np.float32)  # about half a face width a second
        got = smooth.follow(moved, k / 25)
    assert np.abs(got - moved).mean() < 1.0


def test_a_face_at_the_edge_stays_inside_of_the_picture(tracker):
    for k, frame in enumerate(scene(12)):
        moved = cv2.warpAffine(frame, np.float64([[1, 0, -5 * k], [0, 1, 0]]), (384, 216))
        for face in tracker.follow(Picture(moved), k / 25, Timings()):
            box = face.box
            assert 0 <= box.left < box.right <= 384
            assert 0 <= box.top < box.bottom <= 216


def test_without_a_mesh_faces_are_found_in_every_frame(pipeline):
    """As with the landmark models that cannot tell that a face is gone, or with none."""
    bare = replace(pipeline, models=replace(pipeline.models, landmarks=None))
    frames = list(scene(8))
    blank = np.full_like(frames[0], 127)
    tracker, trace = Tracker(bare, Targets(), 25.0), Timings()
    found = [
        tracker.follow(Picture(frame), k / 25, trace) for k, frame in enumerate([*frames, blank])
    ]
    assert [len(each) for each in found] == [2] * 8 + [0]
    assert sum(span.stage == "detect" for span in trace.spans) >= 9
    for face, other in zip(found[0], found[7], strict=True):
        assert face.mesh is None
        assert np.abs(face.five - other.five).max() < 40
