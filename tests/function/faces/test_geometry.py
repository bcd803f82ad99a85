"""Points and crops land where the formulas say, to a fraction of a pixel."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from function.faces import geometry

floats = st.floats(-1000, 1000, allow_nan=False, width=32)
points = st.lists(st.tuples(floats, floats), min_size=2, max_size=20).map(np.array)


def matrix(scale: float, degrees: float, shift: tuple[float, float]) -> np.ndarray:
    cos, sin = scale * np.cos(np.radians(degrees)), scale * np.sin(np.radians(degrees))
    return np.array([[cos, -sin, shift[0]], [sin, cos, shift[1]]])


similarities = st.builds(
    matrix, st.floats(0.05, 20), st.floats(-180, 180), st.tuples(floats, floats)
)


@given(points, similarities)
def test_a_similarity_is_recovered_from_points(src: np.ndarray, wanted: np.ndarray):
    assume(np.ptp(src, axis=0).max() > 1)
    found = geometry.similarity(src, src @ wanted[:, :2].T + wanted[:, 2])
    reach = np.abs(src).max() * np.abs(wanted[:, :2]).max() + np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, atol=1e-6 * reach)


@given(points, points)
def test_a_similarity_never_mirrors(src: np.ndarray, dst: np.ndarray):
    n = min(len(src), len(dst))
    assume(np.ptp(src[:n], axis=0).max() > 1)
    found = geometry.similarity(src[:n], dst[:n])
    assert np.linalg.det(found[:, :2]) >= 0
    assert found[0, 0] == found[1, 1]
    assert found[0, 1] == -found[1, 0]


def test_a_similarity_of_noisy_points_is_the_least_squares_one():
    rng = np.random.default_rng(0)
    src = rng.normal(size=(30, 2)) * 50
    dst = src @ matrix(1.3, 25, (0, 0))[:, :2].T + rng.normal(size=(30, 2)) + 7
    found = geometry.similarity(src, dst)

    def error(m: np.ndarray) -> float:
        return float(((src @ m[:, :2].T + m[:, 2] - dst) ** 2).sum())

    best = error(found)
    for step in np.eye(4) * 1e-3:
        a, b, x, y = step
        assert error(found + np.array([[a, -b, x], [b, a, y]])) > best
        assert error(found - np.array([[a, -b, x], [b, a, y]])) > best


@given(points, similarities)
def test_inverting_undoes_applying(src: np.ndarray, m: np.ndarray):
    there = src @ m[:, :2].T + m[:, 2]
    back = geometry.apply(geometry.invert(m), there)
    assert back.dtype == np.float32
    scale = np.sqrt(np.linalg.det(m[:, :2]))
    np.testing.assert_allclose(back, src, atol=1e-3 * (1 + np.abs(m).max() / scale))


def waves(x: np.ndarray, y: np.ndarray, length: float) -> np.ndarray:
    """A smooth pattern, [..., 3], that has a slope everywhere in at least one channel."""
    phases = np.stack([x, y, x + y], -1) * (2 * np.pi / length)
    return 127.5 + 120 * np.sin(phases)


@pytest.mark.parametrize("scale", [0.03, 0.1, 0.24, 0.3, 0.49, 0.51, 0.9, 1.0, 2.5])
@pytest.mark.parametrize("degrees", [0, 30, -90, 170])
def test_a_crop_keeps_positions_to_a_third_of_a_pixel(scale: float, degrees: float):
    height, width, side, length = 1501, 1803, 64, 40 / scale
    ys, xs = np.mgrid[:height, :width]
    image = np.rint(waves(xs, ys, length)).astype(np.uint8)
    turn = matrix(scale, degrees, (0, 0))[:, :2]
    m = np.column_stack([turn, (side / 2, side / 2) - turn @ (width / 2 + 3.3, height / 2 - 5.7)])
    got = geometry.crop(image, m, (side, side)).astype(float)
    v, u = np.mgrid[:side, :side]
    where = np.stack([u, v], -1) @ geometry.invert(m)[:, :2].T + geometry.invert(m)[:, 2]
    wanted = waves(where[..., 0], where[..., 1], length)
    inside = ((where >= 2 / scale) & (where <= (width, height) - np.array(2 / scale + 1))).all(-1)
    assert inside.mean() > 0.2
    # The slope of a channel reaches 120 · 2π / 40 levels for one pixel of the crop.
    slope = 120 * 2 * np.pi / 40
    assert np.abs(got - wanted)[inside].max() < 0.3 * slope


@pytest.mark.parametrize("scale", [0.06, 0.2, 0.26])
def test_a_fine_pattern_becomes_gray_and_not_moire(scale: float):
    squares = np.indices((1024, 1024)).sum(0) % 2 * 255
    image = np.repeat(squares[..., None], 3, 2).astype(np.uint8)
    turn = matrix(scale, 20, (0, 0))[:, :2]
    m = np.column_stack([turn, (12, 12) - turn @ (512, 512)])
    assert np.abs(geometry.crop(image, m, (24, 24)).astype(float) - 127).max() < 20


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 3.0])
def test_what_lies_outside_the_image_is_black_or_the_repeated_border(scale: float):
    image = np.full((400, 600, 3), (200, 100, 50), np.uint8)
    m = matrix(scale, 0, (20, 20))  # the image's corner lies at (20, 20) of the crop
    black = geometry.crop(image, m, (40, 40))
    assert not black[:18].any()
    assert not black[:, :18].any()
    side = min(38, int(20 + 400 * scale) - 2)
    assert (black[22:side, 22:side] == (200, 100, 50)).all()
    repeated = geometry.crop(image, m, (40, 40), cv2.BORDER_REPLICATE)
    assert (repeated == (200, 100, 50)).all()


@pytest.mark.parametrize("scale", [0.05, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("shift", [(-1e5, 0), (1e5, 50), (30, -1e5), (0, 1e5), (1e5, 1e5)])
def test_a_crop_wholly_outside_is_no_error(scale: float, shift: tuple[float, float]):
    image = np.full((300, 500, 3), 90, np.uint8)
    m = matrix(scale, 45, shift)
    assert not geometry.crop(image, m, (32, 24)).any()
    repeated = geometry.crop(image, m, (32, 24), cv2.BORDER_REPLICATE)
    assert repeated.shape == (24, 32, 3)
    assert (repeated == 90).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (2, 3)])
@pytest.mark.parametrize("scale", [0.01, 0.4, 8])
def test_the_smallest_images_can_be_cropped(shape: tuple[int, int], scale: float):
    image = np.full((*shape, 3), 77, np.uint8)
    got = geometry.crop(image, matrix(scale, 10, (5, 5)), (10, 10), cv2.BORDER_REPLICATE)
    assert (got == 77).all()


def test_an_image_longer_than_opencv_warps_can_be_cropped():
    image = np.zeros((20, 40_000, 3), np.uint8)
    image[:, 39_000:] = 250
    got = geometry.crop(image, matrix(1, 0, (-38_990, 0)), (20, 20))
    assert got[10].mean(-1).tolist() == [0] * 10 + [250] * 10
    got = geometry.crop(image, matrix(0.1, 0, (-3_890, 0)), (20, 2))
    assert got[1, 5, 0] == 0
    assert got[1, 15, 0] == 250


@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.1, 50))
def test_halving_stops_in_time_and_keeps_the_mean(height: int, width: int, most: float):
    rng = np.random.default_rng(height * 41 + width)
    image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    small, factor = geometry.halve(image, most)
    assert factor == 1 or factor <= most
    assert small.shape == (height // factor, width // factor, 3)
    assert 2 * factor > most or min(small.shape[:2]) == 1
    used = image[: small.shape[0] * factor, : small.shape[1] * factor].astype(float)
    assert abs(small.mean() - used.mean()) < factor
