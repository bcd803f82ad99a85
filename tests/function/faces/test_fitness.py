"""A photo serves the better, the more it shows of a face."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from function.faces import fitness
from function.faces.face import Box, Detection, Face, Pose
from function.faces.swappers.protocol import SourceFace
from function.images.picture import Picture


def _skin(size: int) -> np.ndarray:
    """Something with detail of every size."""
    odd = np.random.default_rng(2)
    image = np.full((size, size), 120.0)
    for sigma in (1, 2, 4, 8):
        noise = cv2.GaussianBlur(odd.normal(size=(size, size)), (0, 0), sigma * size / 128)
        image += 8 * noise / noise.std()
    return np.repeat(np.clip(image, 0, 255).astype(np.uint8)[..., None], 3, 2)


def photo(pixels: np.ndarray, yaw: float = 0.0, *, gray: bool = False) -> SourceFace:
    box = Box(0, 0, pixels.shape[1], pixels.shape[0])
    five = np.zeros((5, 2), np.float32)
    face = Face(0, box, Detection(box, five, 0.9), five, 1.0, Pose(yaw, 0.0, 0.0))
    return SourceFace(Picture(pixels, gray=gray), face, np.zeros(4, np.float32))


GOOD = _skin(200)
WORSE = {
    "out of focus": photo(cv2.GaussianBlur(GOOD, (0, 0), 4)),
    "overexposed": photo(np.clip(GOOD * 2.2, 0, 255).astype(np.uint8)),
    "small": photo(cv2.resize(GOOD, (60, 60), interpolation=cv2.INTER_AREA)),
    "turned": photo(GOOD, 30),
    "without colour": photo(GOOD, gray=True),
}


@pytest.mark.parametrize("how", WORSE)
def test_each_fault_costs(how):
    assert fitness.of(WORSE[how]) < fitness.of(photo(GOOD)) - 4


def test_light_alone_costs_nothing():
    dim = photo((GOOD * 0.5).astype(np.uint8))
    assert fitness.of(dim) == pytest.approx(fitness.of(photo(GOOD)), abs=0.5)


def test_half_the_size_counts_half():
    assert fitness.weights([40.0, 50.0, 30.0]) == pytest.approx([0.5, 1, 0.25])


def test_blur_is_seen_at_any_size():
    for size in (120, 400):
        good = _skin(size)
        bad = cv2.GaussianBlur(good, (0, 0), size / 50)
        assert fitness.of(photo(bad)) < fitness.of(photo(good)) - 4
