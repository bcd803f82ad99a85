"""A person is the mean of their photos, and the photo that serves best gives the face."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from function.faces.face import Box, Detection, Face, Pose
from function.faces.identity import ARCFACE, DLIB
from function.faces.person import Person
from function.faces.swappers.protocol import SourceFace
from function.images.picture import Picture
from function.quality_warning import QualityWarning

PICTURE = Picture(np.zeros((8, 8, 3), np.uint8))


def portrait(size: float, yaw: float, identity: float = 0.0) -> SourceFace:
    box = Box(0, 0, size, size)
    detection = Detection(box, np.zeros((5, 2), np.float32), 0.9)
    face = Face(0, box, detection, detection.points, 1.0, Pose(yaw, 0.0, 0.0))
    return SourceFace(PICTURE, face, np.full(128, identity, np.float32))


def best(*portraits: SourceFace) -> SourceFace:
    person = Person(DLIB)
    for each in portraits:
        person.add(each)
    return person.source()


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (portrait(200, 2), portrait(200, 30)),  # looks into the camera
        (portrait(250, 3), portrait(22, 0)),  # has far more pixels, and is hardly turned
        (portrait(90, 0), portrait(220, 60)),  # a profile is no use, however large
        (portrait(512, 1), portrait(4000, 9)),  # more pixels than enough are worth nothing
    ],
)
def test_the_photo_that_serves_best_gives_the_face_in_any_order(better, worse):
    assert best(better, worse).face is better.face
    assert best(worse, better).face is better.face


def test_the_choice_does_not_depend_on_the_order_of_many():
    portraits = [portrait(size, yaw) for size in (20, 100, 300) for yaw in (0, 12, 25)]
    chosen = {id(best(*order).face) for order in itertools.permutations(portraits[::2])}
    assert len(chosen) == 1


def test_the_identity_of_photos_that_serve_alike_is_the_mean():
    mean = best(portrait(100, 0, 0.1), portrait(100, 0, 0.3)).embedding
    assert mean == pytest.approx(np.full(128, 0.2))
    assert mean.dtype == np.float32


def test_photos_of_two_people_are_noticed():
    person = Person(DLIB)
    person.add(portrait(100, 0, 0.0))
    assert person.warnings == ()
    person.add(portrait(100, 0, 0.7 / np.sqrt(128)))
    assert person.warnings == (QualityWarning.SOURCES_DIFFER,)


@pytest.mark.parametrize(
    ("cosine", "told"), [(1.0, False), (0.5, False), (0.2, True), (-0.5, True)]
)
def test_photos_of_two_people_are_noticed_by_the_angle_between_arcface_embeddings(cosine, told):
    person = Person(ARCFACE)
    for where in ((1, 0), (cosine, (1 - cosine**2) ** 0.5)):
        embedding = np.zeros(512, np.float32)
        embedding[:2] = 20 * np.array(where)
        person.add(replace(portrait(100, 0), embedding=embedding))
    assert (QualityWarning.SOURCES_DIFFER in person.warnings) == told


def test_a_person_needs_a_photo():
    with pytest.raises(ValueError, match="without a photo"):
        Person(DLIB).source()


def test_a_photo_that_serves_badly_counts_little():
    mean = best(portrait(200, 0, 0.1), portrait(25, 0, 0.5)).embedding
    assert mean == pytest.approx(np.full(128, (8 * 0.1 + 0.5) / 9))
