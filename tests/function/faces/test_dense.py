"""Flat landmarks: the crop that the networks see, and the way back from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from function.faces.dense import Fan68, Flat106
from function.faces.face import Box, Detection

if TYPE_CHECKING:
    from tests.function.faces.conftest import Pixels

BOX = Box(100, 150, 220, 310)


def upright(turn: int = 0) -> Detection:
    """A face whose eye line is turned by quarters."""
    eyes = {0: (1, 0), 1: (0, 1), 2: (-1, 0), 3: (0, -1)}[turn]
    points = np.full((5, 2), BOX.center, np.float32)
    points[1] += np.array(eyes, np.float32) * 40
    return Detection(BOX, points, 0.8)


class Scripted:
    """An engine that gives what it is told."""

    provider, items = "CPUExecutionProvider", None

    def __init__(self, *outputs: np.ndarray) -> None:
        self._outputs = outputs

    def run(self, batch: np.ndarray) -> list[np.ndarray]:
        self.batch = batch
        return [output[None].astype(np.float32) for output in self._outputs]


def fan(x: float, y: float, heat: float) -> Scripted:
    """The network of 68 points, all in one place of 64 × 64, as sure as `heat`."""
    maps = np.zeros((68, 64, 64))
    maps[:, 3, 4] = heat
    return Scripted(np.tile([x, y, heat], (68, 1)), maps)


@pytest.mark.parametrize("turn", range(4))
def test_the_middle_of_the_crop_is_the_middle_of_the_box_whichever_way_up(
    turn: int, collins: Pixels
):
    detection = upright(turn)
    for found in (
        Fan68(fan(32, 32, 0.9)).fit(collins, detection),
        Flat106(Scripted(np.zeros(212))).fit(collins, detection),
    ):
        np.testing.assert_allclose(found.outline, np.tile(BOX.center, (len(found.outline), 1)))


@pytest.mark.parametrize(("turn", "wanted"), [(0, (1, 0)), (1, (0, 1)), (2, (-1, 0)), (3, (0, -1))])
def test_to_the_right_in_the_crop_is_along_the_eyes(turn: int, wanted: tuple, collins: Pixels):
    found = Fan68(fan(48, 32, 0.9)).fit(collins, upright(turn))
    along = found.outline[0] - BOX.center
    scale = 195 / 160  # of a box that is 160 high
    np.testing.assert_allclose(along, np.array(wanted) * 64 / scale, atol=1e-3)


def test_five_points_come_from_68_that_are_sure_and_else_from_the_detector(collins: Pixels):
    sure = Fan68(fan(32, 32, 0.9)).fit(collins, upright())
    assert sure.presence == 1
    np.testing.assert_allclose(sure.five, np.tile(BOX.center, (5, 1)))
    unsure = Fan68(fan(32, 32, 0.3)).fit(collins, upright())
    assert (unsure.five == upright().points).all()


def test_each_of_the_five_is_where_the_68_have_it(collins: Pixels):
    points = np.zeros((68, 3))
    points[:, 0] = np.arange(68) / 2
    found = Fan68(Scripted(points, np.ones((68, 64, 64)))).fit(collins, upright())
    across = (found.five[:, 0] - found.outline[0, 0]) / (found.outline[1, 0] - found.outline[0, 0])
    np.testing.assert_allclose(across, [38.5, 44.5, 30, 48, 54], atol=1e-2)


def test_the_networks_see_what_they_were_trained_on(collins: Pixels):
    red = np.zeros_like(collins)
    red[:256] = (200, 40, 0)
    red[256:] = (0, 40, 200)  # so that the contrast is not stretched
    engine = fan(32, 32, 1)
    Fan68(engine).fit(red, upright())
    assert engine.batch.shape == (1, 3, 256, 256)
    np.testing.assert_allclose(engine.batch[0, :, 20, 128] * 255, (0, 40, 200), atol=0.1)  # BGR
    engine = Scripted(np.zeros(212))
    Flat106(engine).fit(red, upright())
    assert engine.batch.shape == (1, 3, 192, 192)
    np.testing.assert_allclose(engine.batch[0, :, 20, 96], (200, 40, 0))
