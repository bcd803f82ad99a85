"""Only dull images are changed, and then over the whole range."""

from __future__ import annotations

import numpy as np
import pytest

from function.faces.exposure import lifted


def test_an_ordinary_photo_comes_back_as_it_is(collins: np.ndarray):
    assert lifted(collins) is collins


@pytest.mark.parametrize(("scale", "shift"), [(0.05, 0), (0.1, 110), (0.15, 215)])
def test_a_dull_photo_gets_the_whole_range(collins: np.ndarray, scale: float, shift: int):
    dull = (collins * scale + shift).astype(np.uint8)
    before = dull.copy()
    bright = lifted(dull)
    assert bright.dtype == np.uint8
    assert np.percentile(bright, 2) < 20
    assert np.percentile(bright, 98) > 225
    assert (dull == before).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (50, 70)])
def test_a_flat_image_has_nothing_to_stretch(shape: tuple[int, int]):
    flat = np.full((*shape, 3), 9, np.uint8)
    assert lifted(flat) is flat
