"""Points are carried by what a picture shows, to a fraction of a pixel."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from function.faces import geometry
from function.video import motion

_MIDDLE = (160.0, 120.0)


@pytest.fixture(scope="module")
def picture():
    noise = np.random.default_rng(3).normal(size=(240, 320, 3))
    noise = cv2.GaussianBlur(noise, (0, 0), 3)
    return np.clip(128 + 30 * noise / noise.std(), 0, 255).astype(np.uint8)


@pytest.fixture
def points():
    face = np.random.default_rng(4).uniform(-60, 60, (468, 3))
    return (face + np.array([*_MIDDLE, 0])).astype(np.float32)


def moved(picture, degrees, scale, right):
    matrix = cv2.getRotationMatrix2D(_MIDDLE, degrees, scale)
    matrix[0, 2] += right
    return matrix, cv2.warpAffine(picture, matrix, (320, 240), borderMode=cv2.BORDER_REFLECT)


@pytest.mark.parametrize("how", [(0, 1, 2.5), (2, 1, 0), (0, 1.03, 0), (-1.5, 0.98, -4)])
def test_points_go_with_the_picture(picture, points, how):
    matrix, after = moved(picture, *how)
    noise = np.random.default_rng(5).normal(0, 3, after.shape)
    after = np.clip(after + noise, 0, 255).astype(np.uint8)
    got = motion.carried(motion.look(picture, points), after, points)
    assert np.abs(got[:, :2] - geometry.apply(matrix, points[:, :2])).max() < 0.25
    assert np.array_equal(got[:, 2], points[:, 2])


def test_a_part_that_moves_alone_does_not_count(picture, points):
    matrix, after = moved(picture, 0, 1, 2)
    after[150:180, 140:180] = picture[145:175, 140:180]  # a mouth
    got = motion.carried(motion.look(picture, points), after, points)
    assert np.abs(got[:, :2] - geometry.apply(matrix, points[:, :2])).max() < 0.1


def test_where_nothing_moves_together_points_stay(picture, points):
    other = np.ascontiguousarray(picture[::-1, ::-1])
    before = motion.look(picture, points)
    assert np.array_equal(motion.carried(before, other, points), points)
