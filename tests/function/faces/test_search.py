"""Every face is found: close, cut, small, dark, turned, in crowds; and none where there is none."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.faces import pose
from function.faces.detect import CenterFace
from function.faces.face import Detection, Fitted
from function.faces.landmarks import LEFT_EYE, RIGHT_EYE
from function.faces.search import Search, unconfirmed
from function.telemetry.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.function.faces.conftest import Counting, Find, Pixels

WORST = 26
"""Runs of the detector for any one photo."""


@pytest.fixture(params=["collins", "hopper"])
def photo(request: pytest.FixtureRequest) -> Pixels:
    return request.getfixturevalue(request.param)


@pytest.fixture
def truth(photo: Pixels, find: Find) -> np.ndarray:
    """Mesh points of the photo as it is, float [468, 2]."""
    (fitted,) = find(photo)
    return fitted.mesh[:, :2]


def apart(mesh: np.ndarray, wanted: np.ndarray, pixels: Pixels) -> float:
    """Mean distance of the points that lie inside the image, in eye distances."""
    height, width = pixels.shape[:2]
    inside = ((wanted >= 0) & (wanted < (width, height))).all(1)
    eyes = np.linalg.norm(wanted[RIGHT_EYE] - wanted[LEFT_EYE])
    return float(np.linalg.norm(mesh[:, :2] - wanted, axis=1)[inside].mean() / eyes)


def resized(pixels: Pixels, scale: float) -> Pixels:
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    return cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=way)


def cut(pixels: Pixels, left: float, top: float, right: float, bottom: float) -> Pixels:
    return np.ascontiguousarray(pixels[int(top) : int(bottom), int(left) : int(right)])


# --- ordinary photos ----------------------------------------------------------------------------


@pytest.mark.parametrize("megapixels", [0.25, 2, 12])
def test_an_ordinary_photo_costs_one_run(
    megapixels: float, photo: Pixels, find: Find, detect_engine: Counting, mesh_engine: Counting
):
    photo = resized(photo, np.sqrt(megapixels * 1e6 / (photo.shape[0] * photo.shape[1])))
    detect_engine.reset()
    mesh_engine.reset()
    (fitted,) = find(photo)
    assert (detect_engine.runs, mesh_engine.runs) == (1, 2)
    assert fitted.detection.found_by == "plain"
    assert fitted.presence > 0.99


def test_the_answer_is_the_same_every_time(find: Find, collins: Pixels, hopper: Pixels):
    both = np.hstack([hopper[:512], collins])
    first, second = find(both), find(both)
    assert [f.detection.box for f in first] == [f.detection.box for f in second]
    assert all((a.mesh == b.mesh).all() for a, b in zip(first, second, strict=True))


# --- close, cut, small, dark, turned --------------------------------------------------------------


@pytest.mark.parametrize("share", [1.0, 0.9, 0.8, 0.7])
@pytest.mark.parametrize("side", [None, 300, 1200])
def test_a_face_that_fills_the_frame_is_found(
    share: float, side: int | None, photo: Pixels, truth: np.ndarray, find: Find
):
    box = find(photo)[0].detection.box
    (x, y), w, h = box.center, box.width * share / 2, box.height * share / 2
    left, top = int(x - w), int(y - h)
    close = cut(photo, left, top, x + w, y + h)
    scale = side / max(close.shape) if side else 1.0
    close = resized(close, scale)
    (fitted,) = find(close)
    assert apart(fitted.mesh, (truth - (left, top)) * scale, close) < 0.1


@pytest.mark.parametrize("edge", ["left", "right", "top", "bottom"])
@pytest.mark.parametrize("share", [0.3, 0.5])
def test_a_face_cut_by_the_border_is_found(
    edge: str, share: float, photo: Pixels, truth: np.ndarray, find: Find
):
    box = find(photo)[0].detection.box
    height, width = photo.shape[:2]
    window = {
        "left": (box.left + share * box.width, 0, width, height),
        "right": (0, 0, box.right - share * box.width, height),
        "top": (0, box.top + share * box.height, width, height),
        "bottom": (0, 0, width, box.bottom - share * box.height),
    }[edge]
    half = cut(photo, *window)
    (fitted,) = find(half)
    assert apart(fitted.mesh, truth - (int(window[0]), int(window[1])), half) < 0.1


@pytest.mark.parametrize("pixels", [16, 20, 24])
def test_a_tiny_photo_of_a_tiny_face_is_enough(
    pixels: int, photo: Pixels, truth: np.ndarray, find: Find
):
    scale = pixels / find(photo)[0].detection.box.height
    small = resized(photo, scale)
    (fitted,) = find(small)
    assert apart(fitted.mesh, truth * scale, small) < 0.15


LIGHT = {
    "nearly black": (0.03, 0),
    "dark": (0.08, 0),
    "foggy": (0.1, 110),
    "nearly white": (0.15, 215),
}


@pytest.mark.parametrize("light", LIGHT)
def test_bad_light_hides_no_face(light: str, photo: Pixels, truth: np.ndarray, find: Find):
    scale, shift = LIGHT[light]
    dull = (photo * scale + shift).astype(np.uint8)
    (fitted,) = find(dull)
    assert apart(fitted.mesh, truth, dull) < 0.1


@pytest.mark.parametrize("degrees", [30, -30, 45, -45, 60, 120, -150])
def test_a_tilted_head_is_fitted(degrees: int, photo: Pixels, truth: np.ndarray, find: Find):
    height, width = photo.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), -degrees, 0.8)
    tilted = cv2.warpAffine(photo, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE)
    (fitted,) = find(tilted)
    assert apart(fitted.mesh, truth @ matrix[:, :2].T + matrix[:, 2], tilted) < 0.06
    assert pose.estimate(fitted.mesh).roll == pytest.approx(degrees, abs=8)


@pytest.mark.parametrize("quarters", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.3, 1, 4])
def test_a_photo_that_lost_its_orientation_is_fitted(
    quarters: int, scale: float, photo: Pixels, truth: np.ndarray, find: Find
):
    photo = resized(photo, scale)
    wanted, width = truth * scale, photo.shape[1]
    for _ in range(quarters):  # counter-clockwise: (x, y) goes to (y, width − 1 − x)
        wanted = np.stack([wanted[:, 1], width - 1 - wanted[:, 0]], 1)
        photo = np.ascontiguousarray(np.rot90(photo))
        width = photo.shape[1]
    (fitted,) = find(photo)
    assert apart(fitted.mesh, wanted, photo) < 0.06
    points = fitted.detection.points
    assert np.linalg.norm(points.mean(0) - wanted.mean(0)) < np.ptp(wanted, axis=0).max() / 3


# --- several faces, large photos ------------------------------------------------------------------


def pasted(
    size: tuple[int, int], heights: list[int], collins: Pixels, hopper: Pixels
) -> tuple[Pixels, list[tuple[float, float]]]:
    """A noisy canvas with faces of these heights on a grid of four in a row; their middles."""
    width, height = size
    rng = np.random.default_rng(0)
    ground = rng.normal(110, 12, (height // 8, width // 8, 3)).clip(0, 255).astype(np.uint8)
    canvas = cv2.resize(ground, (width, height), interpolation=cv2.INTER_CUBIC)
    rows = -(-len(heights) // 4)
    middles = []
    for place, wanted in enumerate(heights):
        person = (collins[20:240, 110:340], hopper[60:420, 90:450])[place % 2]
        person = resized(person, wanted / (119, 206)[place % 2])
        x = (2 * (place % 4) + 1) * width // 8
        y = (2 * (place // 4) + 1) * height // (2 * rows)
        h, w = person.shape[:2]
        canvas[y - h // 2 : y - h // 2 + h, x - w // 2 : x - w // 2 + w] = person
        middles.append((x, y))
    return canvas, middles


def matched(found: list[Fitted], middles: list[tuple[float, float]], within: float) -> list[int]:
    """For each middle, how many of the faces lie there."""
    centers = np.array([fitted.mesh[:, :2].mean(0) for fitted in found]).reshape(-1, 2)
    return [int((np.linalg.norm(centers - middle, axis=1) < within).sum()) for middle in middles]


MIXED = [40, 60, 250, 48, 90, 44, 130, 70, 200, 55, 42, 160]


@pytest.mark.parametrize(
    "heights", [MIXED, [44] * 12, [300, 45] * 6], ids=["mixed", "small", "large and small"]
)
def test_all_twelve_faces_of_a_large_photo_are_found_once(
    heights: list[int], find: Find, detect_engine: Counting, collins: Pixels, hopper: Pixels
):
    photo, middles = pasted((4000, 3000), heights, collins, hopper)
    detect_engine.reset()
    found = find(photo)
    assert matched(found, middles, 150) == [1] * 12
    assert len(found) == 12
    assert detect_engine.runs <= WORST
    assert detect_engine.largest <= 3 * 640 * 640


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_all_faces_of_a_turned_group_are_found(
    quarters: int, find: Find, collins: Pixels, hopper: Pixels
):
    photo, middles = pasted((1600, 900), [60, 90, 130, 75, 110, 80, 64, 100], collins, hopper)
    width = photo.shape[1]
    for _ in range(quarters):
        middles = [(y, width - 1 - x) for x, y in middles]
        photo = np.ascontiguousarray(np.rot90(photo))
        width = photo.shape[1]
    found = find(photo)
    assert matched(found, middles, 60) == [1] * 8
    assert len(found) == 8
    for fitted in found:
        roll = pose.estimate(fitted.mesh).roll
        assert abs((roll + 90 * quarters + 180) % 360 - 180) < 20


def test_a_crowd_is_found_in_a_web_sized_photo(find: Find, collins: Pixels, hopper: Pixels):
    photo, middles = pasted((640, 480), [32] * 16, collins, hopper)
    assert matched(find(photo), middles, 25) == [1] * 16


def test_fifty_megapixels_cost_no_more_than_a_part_of_their_own_memory(
    find: Find, detect_engine: Counting, hopper: Pixels
):
    photo = cv2.resize(hopper, (6532, 7654))
    detect_engine.reset()
    tracemalloc.start()
    try:
        (fitted,) = find(photo)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert fitted.detection.box.height > 2000
    assert detect_engine.largest <= 3 * 640 * 640
    assert peak < 0.5 * photo.nbytes


def test_one_photo_gives_at_most_a_hundred_faces(
    find: Find, mesh_engine: Counting, collins: Pixels
):
    photo = np.tile(resized(collins[30:190, 150:300], 0.45), (14, 14, 1))
    mesh_engine.reset()
    assert len(find(photo)) == 100
    assert mesh_engine.runs <= 100 * 14


# --- no face -------------------------------------------------------------------------------------


def textures() -> dict[str, Callable[[], Pixels]]:
    rng = np.random.default_rng(3)
    ys, xs = np.mgrid[:900, :1200]

    def gray(values: np.ndarray) -> Pixels:
        return np.repeat(values.clip(0, 255).astype(np.uint8)[..., None], 3, 2)

    def cloud(cell: int) -> Pixels:
        coarse = rng.integers(0, 256, (960 // cell, 1280 // cell, 3), dtype=np.uint8)
        return cv2.resize(coarse, (1280, 960), interpolation=cv2.INTER_CUBIC)

    def text() -> Pixels:
        page = np.full((1000, 1400, 3), 255, np.uint8)
        for row in range(30):
            line = "The quick :-) brown fox (o_o) jumps over @@ lazy dogs 8888"
            cv2.putText(page, line, (10, 30 + row * 33), row % 6, 1, (0, 0, 0), 1 + row % 3)
        return page

    return {
        "black": lambda: gray(np.zeros((700, 500))),
        "white": lambda: gray(np.full((500, 700), 255)),
        "gradient": lambda: gray((xs + ys) / 9),
        "rings": lambda: gray(127 + 127 * np.sin(np.hypot(ys - 450, xs - 600) / 9)),
        "checks": lambda: gray((xs // 25 + ys // 25) % 2 * 255),
        "noise": lambda: rng.integers(0, 256, (480, 640, 3), dtype=np.uint8),
        "faint noise": lambda: rng.integers(100, 110, (480, 640, 3), dtype=np.uint8),
        "fine clouds": lambda: cloud(8),
        "clouds": lambda: cloud(64),
        "text": text,
        "noise, 12 megapixels": lambda: rng.integers(0, 256, (3000, 4000, 3), dtype=np.uint8),
    }


@pytest.mark.parametrize("texture", textures())
def test_where_there_is_no_face_none_is_found_at_a_bounded_cost(
    texture: str, find: Find, detect_engine: Counting, mesh_engine: Counting
):
    detect_engine.reset()
    mesh_engine.reset()
    assert find(textures()[texture]()) == []
    assert detect_engine.runs <= WORST
    assert mesh_engine.runs <= 100
    assert detect_engine.largest <= 3 * 640 * 640


def test_a_photo_without_its_face_has_none(find: Find, photo: Pixels):
    box = find(photo)[0].detection.box
    gone = photo.copy()
    top, bottom = int(box.top - box.height / 2), int(box.bottom + box.height / 4)
    left, right = int(box.left - box.width / 4), int(box.right + box.width / 4)
    gone[max(top, 0) : bottom, max(left, 0) : right] = photo.mean((0, 1))
    assert find(gone) == []


@pytest.mark.parametrize("shape", [(1, 1), (1, 2000), (20_000, 1), (2000, 3), (7, 7)])
def test_an_image_too_thin_for_a_face_costs_nothing(
    shape: tuple[int, int], find: Find, detect_engine: Counting
):
    detect_engine.reset()
    assert find(np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)) == []
    assert detect_engine.runs == 0


@pytest.mark.parametrize("shape", [(8, 8), (8, 20_000), (20_000, 9), (33, 31), (64, 40_000)])
def test_an_odd_image_is_searched_without_error(
    shape: tuple[int, int], find: Find, detect_engine: Counting
):
    detect_engine.reset()
    assert find(np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)) == []
    assert detect_engine.runs <= WORST


# --- the landmark model has the last word ---------------------------------------------------------


@pytest.mark.parametrize("name", ["collins", "hopper"])
def test_without_landmarks_the_detector_alone_finds_faces(
    name: str, search: Search, find: Find, request: pytest.FixtureRequest
):
    pixels: Pixels = request.getfixturevalue(name)
    (alone,), (confirmed,) = search.faces(pixels, unconfirmed, Timings()), find(pixels)
    assert alone.detection.box == confirmed.detection.box
    assert (alone.five == alone.detection.points).all()
    assert alone.mesh is alone.outline is None
    eyes = np.linalg.norm(confirmed.five[1] - confirmed.five[0])
    assert np.abs(alone.five - confirmed.five).max() < 0.2 * eyes  # the mesh says nearly the same


def test_a_detection_that_the_landmarks_deny_is_no_face(
    search: Search, detect_engine: Counting, collins: Pixels
):
    asked = []

    def deny(pixels: Pixels, detection: Detection) -> Fitted:
        asked.append(detection)
        return Fitted(detection, detection.points, 0.49)

    detect_engine.reset()
    assert search.faces(collins, deny, Timings()) == []
    assert len(asked) >= 1
    assert detect_engine.runs <= WORST


class Scripted:
    """An engine that sees faces of 40 × 40 pixels where it is told to."""

    provider = "script"

    def __init__(self, cells: list[tuple[int, int, float]]) -> None:
        self._cells = cells

    def run(self, batch: np.ndarray) -> list[np.ndarray]:
        height, width = batch.shape[2] // 4, batch.shape[3] // 4
        heat, size = np.zeros((1, 1, height, width)), np.full((1, 2, height, width), np.log(10))
        for row, col, score in self._cells:
            if row < height and col < width:
                heat[0, 0, row, col] = score
        outputs = [heat, size, np.zeros((1, 2, height, width)), np.zeros((1, 10, height, width))]
        return [output.astype(np.float32) for output in outputs]


def confirm(presence: float) -> Callable[[Pixels, Detection], Fitted]:
    """A landmark model that always says the same; its points lie where the boxes do."""

    def fit(pixels: Pixels, detection: Detection) -> Fitted:
        five = np.full((5, 2), detection.box.center, np.float32)
        five[:2, 0] += (-10, 10)
        return Fitted(detection, five, presence)

    return fit


@pytest.mark.parametrize(
    ("score", "presence", "found"),
    [(0.6, 0.6, True), (0.6, 0.4, False), (0.4, 0.95, True), (0.4, 0.6, False), (0.25, 1.0, False)],
)
def test_the_less_the_detector_is_sure_the_more_the_landmarks_must_be(
    score: float, presence: float, found: bool
):
    search = Search(CenterFace(Scripted([(40, 40, score)])))
    image = np.zeros((640, 640, 3), np.uint8)
    assert bool(search.faces(image, confirm(presence), Timings())) == found


@given(
    st.lists(
        st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(60, 99)),
        min_size=1,
        max_size=30,
        unique_by=lambda cell: cell[:2],
    )
)
def test_faces_come_from_left_to_right_then_from_top_to_bottom(cells: list[tuple[int, int, int]]):
    script = [(12 * row + 8, 12 * col + 8, score / 100) for row, col, score in cells]
    found = Search(CenterFace(Scripted(script))).faces(
        np.zeros((640, 640, 3), np.uint8), confirm(1.0), Timings()
    )
    places = [fitted.detection.box.center for fitted in found]
    assert len(places) == len(cells)
    assert places == sorted(places)
