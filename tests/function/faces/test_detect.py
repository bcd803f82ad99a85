"""What the network sees of an image, and where what it says lies in the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function.faces.detect import CenterFace, View, decode, prepare

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.runtime.engine import Engine
    from tests.function.faces.conftest import Counting, Pixels


class OnGpu:
    """An engine that says that it is on a GPU, and notes the shapes that it is fed."""

    provider, items = "TensorRT", 1

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.shapes: set[tuple[int, ...]] = set()

    def run(self, *inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        self.shapes.update(each.shape for each in inputs)
        return self._engine.run(*inputs)


def whole(pixels: Pixels, turn: int = 0) -> View:
    height, width = pixels.shape[:2]
    return View("plain", (0, 0, width, height), (width, height), turn)


@st.composite
def views(draw: st.DrawFn) -> tuple[int, int, View]:
    """An image's width and height, and a view of some of it that shows at least a part."""
    width, height = draw(st.integers(60, 900)), draw(st.integers(60, 900))
    left = draw(st.integers(-width // 2, width // 2))
    top = draw(st.integers(-height // 2, height // 2))
    right = draw(st.integers(max(left, 0) + 40, width + width // 2))
    bottom = draw(st.integers(max(top, 0) + 40, height + height // 2))
    scale = draw(st.floats(0.15, 1.5))
    size = max(1, round((right - left) * scale)), max(1, round((bottom - top) * scale))
    return width, height, View("any", (left, top, right, bottom), size, draw(st.integers(0, 3)))


@given(views(), st.floats(0.1, 0.9), st.floats(0.1, 0.9))
@settings(max_examples=60, deadline=None)
def test_a_mark_in_the_image_is_found_where_it_was(
    drawn: tuple[int, int, View], across: float, along: float
):
    width, height, view = drawn
    left, top, right, bottom = view.window
    x = max(left, 0) + across * (min(right, width) - max(left, 0))
    y = max(top, 0) + along * (min(bottom, height) - max(top, 0))
    ys, xs = np.mgrid[:height, :width]
    reach = 3 / min(view.scale)  # about three pixels of the network
    mark = 255 * np.exp(-((xs + 0.5 - x) ** 2 + (ys + 0.5 - y) ** 2) / (2 * reach**2))
    ramp = np.broadcast_to(255 * (ys % 60) / 60, mark.shape)  # enough contrast to be left as it is
    blob = prepare(np.stack([mark, ramp, ramp], 2).astype(np.uint8), view)

    assert blob.dtype == np.float32
    assert blob.flags.c_contiguous
    assert blob.shape[:2] == (1, 3)
    assert not blob.shape[2] % 32
    assert not blob.shape[3] % 32
    assert blob.shape[2] * blob.shape[3] >= view.size[0] * view.size[1]

    row, col = np.unravel_index(blob[0, 0].argmax(), blob.shape[2:])
    got = view.to_image(np.array(col + 0.5), np.array(row + 0.5))
    assert np.abs(got - (x, y)).max() < 2.5 / min(view.scale) + 1


@pytest.mark.parametrize("turn", range(4))
def test_a_turned_view_shows_the_image_turned_clockwise(turn: int):
    image = np.random.default_rng(0).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    blob = prepare(image, whole(image, turn))
    assert (blob[0].transpose(1, 2, 0) == np.rot90(image, -turn)).all()


def test_beyond_the_border_the_network_sees_the_mean_colour():
    image = np.full((50, 70, 3), (200, 10, 90), np.uint8)
    image[:, :35] = (100, 30, 90)
    blob = prepare(image, View("padded", (-40, -30, 110, 80), (150, 110)))
    assert blob.shape == (1, 3, 128, 160)
    assert (blob[0, :, 30:80, 40:110].transpose(1, 2, 0) == image).all()
    blob[0, :, 30:80, 40:110] = np.array([150, 20, 90])[:, None, None]
    assert np.abs(blob[0] - np.array([150, 20, 90])[:, None, None]).max() <= 1


def test_a_dull_image_reaches_the_network_with_its_full_range(collins: Pixels):
    dark = (collins * 0.04).astype(np.uint8)
    assert prepare(dark, whole(dark)).max() == 255


def test_a_detection_is_plain_numbers(detector: CenterFace, collins: Pixels):
    (found,) = detector.detect(collins, whole(collins))
    box = found.box
    assert all(type(v) is float for v in (box.left, box.top, box.right, box.bottom, found.score))
    assert found.points.shape == (5, 2)
    assert found.points.dtype == np.float32
    assert found.found_by == "plain"
    assert found.score > 0.85
    assert (box.left, box.top) == pytest.approx((182, 58), abs=4)
    assert (box.right, box.bottom) == pytest.approx((270, 178), abs=4)
    left, right, nose, mouth_left, mouth_right = found.points
    assert left[0] < nose[0] < right[0]
    assert mouth_left[0] < nose[0] < mouth_right[0]
    assert max(left[1], right[1]) < nose[1] < min(mouth_left[1], mouth_right[1])


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_a_turned_view_finds_the_turned_face_in_the_coordinates_of_the_image(
    turn: int, detector: CenterFace, collins: Pixels
):
    (upright,) = detector.detect(collins, whole(collins))
    points = upright.points
    for _ in range(turn):  # (x, y) of a photo 512 wide goes to (y, 512 − x)
        points = np.stack([points[:, 1], 512 - points[:, 0]], 1)
    turned = np.ascontiguousarray(np.rot90(collins, turn))  # counter-clockwise
    (found,) = detector.detect(turned, whole(turned, turn))
    np.testing.assert_allclose(found.points, points, atol=1)
    assert found.box.left < found.points[:, 0].min() < found.points[:, 0].max() < found.box.right
    assert found.box.top < found.points[:, 1].min() < found.points[:, 1].max() < found.box.bottom


def maps(height: int, width: int) -> list[np.ndarray]:
    """The network's outputs when it sees nothing."""
    return [np.zeros((1, n, height, width), np.float32) for n in (1, 2, 2, 10)]


def test_nothing_above_the_threshold_is_no_face():
    view = View("plain", (0, 0, 64, 64), (64, 64))
    assert decode(maps(16, 16), view, 0.5) == []


def test_cells_of_one_face_give_one_detection_and_the_best_one():
    outputs = maps(16, 16)
    outputs[0][0, 0, 5:7, 5:7] = [[0.6, 0.7], [0.9, 0.8]]
    outputs[0][0, 0, 12, 12] = 0.55
    outputs[1][:] = np.log(5)
    view = View("plain", (100, 200, 228, 328), (64, 64))  # an image pixel is half of the network's
    best, other = decode(outputs, view, 0.5)
    assert best.score == pytest.approx(0.9)
    assert best.box.center == pytest.approx((100 + 2 * 4 * 5.5, 200 + 2 * 4 * 6.5))
    assert (best.box.width, best.box.height) == pytest.approx((40, 40))
    assert other.score == pytest.approx(0.55)


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("part", [(1.0, 1.0), (0.6, 1.0), (1.0, 0.7)])
def test_on_a_gpu_all_views_have_one_shape_and_the_faces_are_the_same(
    detector: CenterFace,
    detect_engine: Counting,
    hopper: Pixels,
    turn: int,
    part: tuple[float, float],
):
    height, width = (round(side * share) for side, share in zip(hopper.shape, part, strict=False))
    scale = 640 / max(height, width)
    size = round(width * scale), round(height * scale)
    view = View("plain", (0, 0, width, height), size, turn)
    engine = OnGpu(detect_engine)
    found = CenterFace(engine).detect(hopper, view, 0.4)
    right = detector.detect(hopper, view, 0.6)
    assert engine.shapes == {(1, 3, 640, 640)}
    for face in right:
        like = min(found, key=lambda one: float(np.abs(one.points - face.points).max()))
        wide = face.box.right - face.box.left
        assert np.abs(like.points - face.points).max() < 0.02 * wide
        assert abs(like.score - face.score) < 0.05
