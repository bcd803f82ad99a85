"""Detectors with anchors, on random graphs: OpenCV's own YuNet, and what is made of any view."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

from function.faces import anchors
from function.faces.anchors import Anchored, YuNet
from function.faces.detect import View
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.engine import Ports
from tests import neural

if TYPE_CHECKING:
    from pathlib import Path

    from tests.function.faces.conftest import Pixels

ROWS = Ports(rank=3)
WHOLE = View("plain", (0, 0, 640, 640), (640, 640))


@pytest.fixture
def photo(collins: Pixels) -> Pixels:
    """640 × 640."""
    return cv2.resize(collins, (640, 640))


@pytest.mark.parametrize("seed", range(3))
def test_yunet_finds_what_opencv_finds(
    seed: int, tmp_path: Path, photo: Pixels, monkeypatch: pytest.MonkeyPatch
):
    path = neural.make(tmp_path / "model.onnx", "yunet", seed=seed)
    theirs = cv2.FaceDetectorYN.create(str(path), "", (640, 640), 0.3, 1.0, 50000)
    _, found = theirs.detect(np.ascontiguousarray(photo[..., ::-1]))
    monkeypatch.setattr(anchors, "_OVERLAP", 1.0)
    got = YuNet(OnnxEngine(path, ports=ROWS)).detect(photo, WHOLE, 0.3**2)
    mine = np.array(
        [
            [each.box.left, each.box.top, each.box.width, each.box.height, *each.points.ravel(),
             each.score**0.5]
            for each in got
        ]
    )  # fmt: skip
    assert 20 < len(mine) == len(found)
    for row in mine[:200]:
        nearest = found[np.abs(found - row).sum(1).argmin()]
        np.testing.assert_allclose(row, nearest, rtol=1e-3, atol=0.02)


@pytest.mark.parametrize(("family", "kind"), [("scrfd", Anchored), ("yunet", YuNet)])
def test_a_threshold_that_no_cell_reaches_gives_no_face(
    family: str, kind: type[Anchored | YuNet], tmp_path: Path, photo: Pixels
):
    path = neural.make(tmp_path / "model.onnx", family)
    assert kind(OnnxEngine(path, ports=ROWS)).detect(photo, WHOLE, 1.0) == []


class Scripted:
    """An engine of a detector that sees one face in one cell; outputs in an odd order."""

    provider, items = "CPUExecutionProvider", None

    def __init__(self, stride: int, col: int, row: int) -> None:
        self._at = stride, col, row

    def run(self, batch: np.ndarray) -> list[np.ndarray]:
        self.batch = batch
        outputs = []
        for stride in (32, 8, 16):
            side = 640 // stride
            maps = [np.zeros((1, 2 * side * side, size), np.float32) for size in (10, 1, 4)]
            if stride == self._at[0]:
                cell = 2 * (self._at[2] * side + self._at[1]) + 1
                maps[1][0, cell] = 0.9
                maps[2][0, cell] = (1, 2, 3, 4)
                maps[0][0, cell] = np.linspace(-1, 1, 10)
            outputs += maps
        return outputs[::-1]


@pytest.mark.parametrize("stride", [8, 16, 32])
def test_outputs_in_any_order_are_recognised_by_their_shapes(stride: int):
    detector = Anchored(Scripted(stride, col=5, row=7))
    (found,) = detector.detect(np.zeros((640, 640, 3), np.uint8), WHOLE)
    box = found.box
    assert (box.left, box.top) == (4 * stride, 5 * stride)
    assert (box.right, box.bottom) == (8 * stride, 11 * stride)
    wanted = stride * (np.array([5, 7]) + np.linspace(-1, 1, 10).reshape(5, 2))
    np.testing.assert_allclose(found.points, wanted, rtol=1e-5)
    assert found.score == pytest.approx(0.9)


@pytest.mark.parametrize("turn", range(4))
def test_a_view_that_is_a_turned_part_is_seen_in_a_square_and_taken_back(turn: int):
    window, size = (100, 50, 900, 650), (400, 300)  # half the size
    engine = Scripted(16, col=5, row=7)
    image = np.full((1000, 1000, 3), 200, np.uint8)
    (found,) = Anchored(engine).detect(image, View("part", window, size, turn))
    assert engine.batch.shape == (1, 3, 640, 640)
    seen = np.argwhere(engine.batch[0, 0] > 0).max(0) + 1
    assert tuple(seen) == ((416, 320) if turn % 2 else (320, 416))
    # the middle of the box in the network, turned back by hand
    x, y = 6 * 16, 8 * 16
    x, y = {0: (x, y), 1: (y, 320 - x), 2: (416 - x, 320 - y), 3: (416 - y, x)}[turn]
    middle = np.array([100 + 2 * x, 50 + 2 * y])
    assert found.box.left < middle[0] < found.box.right
    assert found.box.top < middle[1] < found.box.bottom


def test_values_are_those_that_the_networks_were_trained_on():
    image = np.full((640, 640, 3), (255, 0, 51), np.uint8)
    engine = Scripted(8, 1, 1)
    Anchored(engine).detect(image, WHOLE)
    wanted = (np.array([255, 0, 51]) - 127.5) / 128
    np.testing.assert_allclose(engine.batch[0, :, 9, 9], wanted, atol=1e-6)
    with pytest.raises(ValueError, match="has not the scores, boxes and five points"):
        YuNet(engine).detect(image, WHOLE)
    np.testing.assert_allclose(engine.batch[0, :, 9, 9], [51, 0, 255])
