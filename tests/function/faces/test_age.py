"""How old people look: the crops and numbers of both kinds of models, on graphs made for it."""

from __future__ import annotations

import numpy as np
import pytest

from function.faces.age import AgeGroups, GenderAge
from function.faces.face import Box, Detection, Face, Pose
from function.runtime.backends.onnx import OnnxEngine
from tests import neural


def face(left: float, top: float, side: float) -> Face:
    box, five = Box(left, top, left + side, top + side), np.zeros((5, 2), np.float32)
    return Face(0, box, Detection(box, five, 1.0), five, 1.0, Pose(0, 0, 0))


class Seen:
    """An engine that gives fixed outputs and keeps what it got."""

    def __init__(self, *rows: list[float]):
        self.rows, self.items = [np.array([row], np.float32) for row in rows], []

    def run(self, batch: np.ndarray) -> list[np.ndarray]:
        self.items.append(batch)
        return [self.rows[len(self.items) - 1]]


PHOTO = np.zeros((200, 300, 3), np.uint8)
PHOTO[50:100, 100:150] = (255, 128, 0)
FACE = face(100, 50, 50)


def test_of_genderage_the_third_number_is_the_age_in_centuries():
    engine = Seen([0.2, 0.8, 0.31], [1, 2, 0.07])
    assert GenderAge(engine).years(PHOTO, [FACE, FACE]) == pytest.approx([31, 7])
    (crop, _) = engine.items
    assert crop.shape == (1, 3, 96, 96)
    np.testing.assert_allclose(crop[0, :, 48, 48], (255, 128, 0))
    assert (crop[0, 0, :14] == 0).all()  # of 96, a face of 64 and a quarter of it around
    assert (crop[0, 0, 18:78, 18:78] == 255).all()


def test_of_groups_it_is_their_mean_as_likely_as_each_is():
    sure, torn = [-20.0] * 9, [-20.0] * 9
    sure[3] = torn[1] = torn[3] = 0.0
    engine = Seen(sure, torn)
    assert AgeGroups(engine).years(PHOTO, [FACE, FACE]) == pytest.approx([24.5, 15.25], abs=0.01)
    crop = engine.items[0]
    assert crop.shape == (1, 3, 224, 224)
    np.testing.assert_allclose(crop[0, :, 112, 112], (1, 128 / 127.5 - 1, -1), atol=1e-6)


def test_a_face_at_the_border_has_an_age_too():
    engine = Seen([0, 0, 0.4])
    assert GenderAge(engine).years(PHOTO, [face(-30, -30, 60)]) == pytest.approx([40])


def test_nobody_has_none():
    assert GenderAge(Seen()).years(PHOTO, []) == []


@pytest.mark.parametrize(
    ("family", "kind"), [("insightface_genderage", GenderAge), ("fairface_9", AgeGroups)]
)
def test_graphs_of_that_form_run(family, kind, tmp_path):
    """Their weights are random: what they say of ages is nothing."""
    engine = OnnxEngine(neural.make(tmp_path / "age.onnx", family))
    (years,) = kind(engine).years(PHOTO, [FACE])
    assert np.isfinite(years)
