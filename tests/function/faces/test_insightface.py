"""The same numbers as InsightFace's own classes, on graphs with the signatures of its models."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from function.faces import align, anchors, geometry
from function.faces.anchors import Anchored
from function.faces.dense import Flat106
from function.faces.detect import View
from function.faces.identity import ArcFace
from function.faces.swappers import emap
from function.faces.swappers.generator import SPECS, Generator
from function.faces.swappers.protocol import SourceFace
from function.images.picture import Picture
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.engine import Ports
from tests import neural

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from function.faces.face import Box, Face
    from tests.function.faces.conftest import Pixels

zoo = pytest.importorskip(
    "insightface.model_zoo", reason="needs insightface, which `make test` installs"
)

pytestmark = pytest.mark.filterwarnings("ignore:`estimate` is deprecated:FutureWarning")

ROWS = Ports(rank=3)
WHOLE = View("plain", (0, 0, 640, 640), (640, 640))


def bgr(pixels: Pixels) -> Pixels:
    return np.ascontiguousarray(pixels[..., ::-1])


@pytest.fixture
def face(collins: Pixels, analyse: Callable[[Pixels], list[Face]]) -> Face:
    """A face that is not shrunk by more than a half, as InsightFace would shrink it badly."""
    (found,) = analyse(collins)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shuffled", [False, True])
def test_inswapper_makes_the_face_that_insightface_makes(
    seed: int, shuffled: bool, tmp_path: Path, face: Face, collins: Pixels
):
    path = neural.make(tmp_path / "own.onnx", "inswapper_128", seed=seed, shuffled=shuffled)
    theirs = neural.make(tmp_path / "theirs.onnx", "inswapper_128", seed=seed)
    embedding = 20 * np.random.default_rng(seed).standard_normal(512).astype(np.float32)
    person = SimpleNamespace(normed_embedding=embedding / np.linalg.norm(embedding))
    swapper = zoo.inswapper.INSwapper(str(theirs))
    wanted, matrix = swapper.get(
        bgr(collins), SimpleNamespace(kps=face.five), person, paste_back=False
    )

    own = align.matrix(face.five, align.ARCFACE_128, 128)
    np.testing.assert_allclose(own, matrix, atol=1e-4)
    generator = Generator(OnnxEngine(path), SPECS["inswapper_128"], lambda: path)
    source = SourceFace(Picture(collins), face, embedding)
    told = generator.source_inputs([source], [face], 0.5, None)
    (got,) = generator.make([geometry.crop(collins, own, (128, 128))], told)
    difference = np.abs(got[..., ::-1].astype(int) - wanted)
    assert difference.max() <= 1
    assert np.ptp(wanted) > 100  # it is a picture


def test_the_projection_is_found_by_its_shape_wherever_it_is(tmp_path: Path):
    wanted = zoo.inswapper.INSwapper(
        str(neural.make(tmp_path / "a.onnx", "inswapper_128", seed=4))
    ).emap
    for half in (False, True):
        path = neural.make(
            tmp_path / f"{half}.onnx", "inswapper_128", seed=4, shuffled=True, half=half
        )
        np.testing.assert_allclose(emap.read(path), wanted, atol=1e-4 if half else 0)


@pytest.mark.parametrize("seed", range(3))
def test_scrfd_finds_what_insightface_finds(
    seed: int, tmp_path: Path, collins: Pixels, monkeypatch: pytest.MonkeyPatch
):
    path = neural.make(tmp_path / "model.onnx", "scrfd", seed=seed)
    photo = np.zeros((640, 640, 3), np.uint8)
    photo[50:562, 64:576] = collins
    theirs = zoo.scrfd.SCRFD(str(path))
    theirs.nms_thresh = 1.0
    monkeypatch.setattr(anchors, "_OVERLAP", 1.0)
    found, points = theirs.detect(bgr(photo), input_size=(640, 640), det_thresh=0.1)
    got = Anchored(OnnxEngine(path, ports=ROWS)).detect(photo, WHOLE, 0.1)

    assert 20 < len(found) == len(got)
    mine = np.array([[*vars_of(each.box), each.score, *each.points.ravel()] for each in got])
    wanted = np.column_stack([found, points.reshape(-1, 10)])
    np.testing.assert_allclose(in_order(mine), in_order(wanted), atol=1e-3)


def test_overlapping_detections_are_thinned_out_as_insightface_does(
    tmp_path: Path, collins: Pixels
):
    path = neural.make(tmp_path / "model.onnx", "scrfd", seed=1)
    photo = np.zeros((640, 640, 3), np.uint8)
    photo[50:562, 64:576] = collins
    found, _ = zoo.scrfd.SCRFD(str(path)).detect(bgr(photo), (640, 640), det_thresh=0.1)
    got = Anchored(OnnxEngine(path, ports=ROWS)).detect(photo, WHOLE, 0.1)
    theirs, mine = (
        {round(float(score), 5) for score in scores}
        for scores in (found[:, 4], [each.score for each in got])
    )
    assert len(theirs & mine) > 0.9 * len(theirs | mine)  # they count a pixel more for each side


def vars_of(box: Box) -> tuple[float, float, float, float]:
    return box.left, box.top, box.right, box.bottom


def in_order(rows: np.ndarray) -> np.ndarray:
    return rows[np.lexsort(np.round(rows[:, :5], 2).T)]


@pytest.mark.parametrize("seed", range(3))
def test_arcface_gives_the_embedding_that_insightface_gives(
    seed: int, tmp_path: Path, face: Face, collins: Pixels
):
    path = neural.make(tmp_path / "model.onnx", "arcface", seed=seed)
    wanted = zoo.arcface_onnx.ArcFaceONNX(str(path)).get(
        bgr(collins), SimpleNamespace(kps=face.five)
    )
    identity = ArcFace(OnnxEngine(path))
    again = replace(face, five=face.five + 3)
    got, other = identity.embed(collins, [face, again])
    assert np.abs(got - wanted).max() < 0.01 * np.abs(wanted).max()
    assert identity.metric.between(got, wanted) < 1e-4
    assert identity.metric.between(other, wanted) > identity.metric.between(got, wanted)


def test_106_landmarks_lie_where_insightface_puts_them(tmp_path: Path, face: Face, collins: Pixels):
    path = neural.make(tmp_path / "model.onnx", "insightface_2d106")
    theirs = zoo.landmark.Landmark(str(path))
    theirs.input_mean, theirs.input_std = 0.0, 1.0  # as it finds out for the real file
    seen = {"bbox": np.array(vars_of(face.detection.box))}
    wanted = theirs.get(bgr(collins), _Face(seen))
    got = Flat106(OnnxEngine(path)).fit(collins, face.detection)
    np.testing.assert_allclose(got.outline, wanted, atol=0.05)


class _Face(dict):
    """What InsightFace calls a face."""

    __getattr__ = dict.__getitem__
