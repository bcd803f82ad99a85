"""Enhancers: every face of a photo in one batch, and nothing but faces."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

from function.faces import align
from function.faces.enhance import SPECS, Enhancer
from function.faces.options import Mask, SwapOptions
from function.faces.swappers.crop_masks import Occlusion

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.faces.face import Face
    from tests.function.faces.conftest import Pixels


class Formula:
    """An engine that gives each value a new one."""

    provider, items = "CPUExecutionProvider", None

    def __init__(self, formula: Callable[[np.ndarray], np.ndarray]) -> None:
        self._formula = formula
        self.batches: list[np.ndarray] = []

    def run(self, batch: np.ndarray) -> list[np.ndarray]:
        self.batches.append(batch)
        return [self._formula(batch).astype(np.float32)]


@pytest.fixture
def face(collins: Pixels, analyse: Callable[[Pixels], list[Face]]) -> Face:
    (found,) = analyse(collins)
    return found


def enhanced(
    engine: Formula, pixels: Pixels, faces: list[Face], look: SwapOptions, **more
) -> Pixels:
    canvas = pixels.copy()
    spec = SPECS[more.pop("family", "gfpgan_512")]
    occlusion = more.pop("occlusion", None)
    Enhancer(engine, spec).enhance(canvas, faces, look, occlusion, gray=more.pop("gray", False))
    return canvas


@pytest.mark.parametrize("family", [each for each in SPECS if SPECS[each].size <= 1024])
def test_an_enhancer_that_changes_nothing_leaves_the_photo_as_it_was(
    family: str, collins: Pixels, face: Face
):
    soft = cv2.GaussianBlur(collins, (0, 0), 2)
    engine = Formula(lambda batch: batch)
    result = enhanced(engine, soft, [face], SwapOptions(enhance=100), family=family)
    side = SPECS[family].size
    assert [batch.shape for batch in engine.batches] == [(1, 3, side, side)]
    assert -1 <= engine.batches[0].min() < engine.batches[0].max() <= 1
    assert np.percentile(cv2.absdiff(result, soft), 99.9) <= 2


def test_all_faces_are_one_batch_and_the_rest_stays(collins: Pixels, face: Face):
    engine = Formula(lambda batch: -batch)
    both = np.hstack([collins, collins])
    second = replace(face, five=face.five + np.array([512, 0]))
    result = enhanced(engine, both, [face, second], SwapOptions(enhance=100))
    assert [len(batch) for batch in engine.batches] == [2]
    assert cv2.absdiff(result[:, :512], result[:, 512:]).max() <= 1
    low = align.corners(face.five, align.FFHQ).min(0)
    high = align.corners(face.five, align.FFHQ).max(0)
    outside = np.ones(collins.shape[:2], bool)
    outside[int(low[1]) : int(high[1]) + 1, int(low[0]) : int(high[0]) + 1] = False
    assert (result[:, :512][outside] == collins[outside]).all()
    x, y = face.five[2].astype(int)
    np.testing.assert_allclose(result[y, x].astype(int), 255 - collins[y, x].astype(int), atol=6)


@pytest.mark.parametrize("percent", [0, 25, 80, 100])
def test_the_blend_is_a_percentage(percent: int, collins: Pixels, face: Face):
    engine = Formula(np.ones_like)
    x, y = face.five[2].astype(int)
    result = enhanced(engine, collins, [face], SwapOptions(enhance=percent))
    before = collins[y, x].astype(float)
    np.testing.assert_allclose(result[y, x], before + (255 - before) * percent / 100, atol=1)


def test_what_covers_a_face_is_not_enhanced(collins: Pixels, face: Face):
    engine = Formula(lambda batch: -batch)
    nothing = Occlusion(Formula(lambda batch: np.zeros((len(batch), 256, 256, 1))))
    assert (
        enhanced(engine, collins, [face], SwapOptions(enhance=100), occlusion=nothing) == collins
    ).all()
    look = SwapOptions(enhance=100, masks=(Mask.BOX,))
    assert (enhanced(engine, collins, [face], look, occlusion=nothing) != collins).any()


def test_a_gray_photo_stays_gray(collins: Pixels, face: Face):
    gray = cv2.cvtColor(cv2.cvtColor(collins, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    scale = np.array([1, 0.5, -1])[:, None, None]
    result = enhanced(Formula(lambda batch: batch * scale), gray, [face], SwapOptions(), gray=True)
    assert (result != gray).any()
    assert (result == result[..., :1]).all()


def test_values_beyond_the_range_are_clipped(collins: Pixels, face: Face):
    result = enhanced(Formula(lambda batch: batch * 50), collins, [face], SwapOptions(enhance=100))
    assert set(np.unique(result[face.five[2].astype(int)[1], face.five[2].astype(int)[0]])) <= {
        0,
        255,
    }


def test_without_faces_nothing_runs(collins: Pixels):
    engine = Formula(lambda batch: batch)
    assert (enhanced(engine, collins, [], SwapOptions()) == collins).all()
    assert engine.batches == []
