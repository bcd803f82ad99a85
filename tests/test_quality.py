"""The judge of `make bench-quality` measures made pictures as they were made."""

from __future__ import annotations

import cv2
import numpy as np

from tests.bench.quality.border import Border

_SIDE = 300
_MESH = np.array(
    [[150 + 100 * np.cos(a), 150 + 120 * np.sin(a), 0] for a in np.linspace(0, 6.28, 468)],
    np.float32,
)


def skin() -> np.ndarray:
    """Skin with some noise, uint8 [H, W, 3]."""
    noise = np.random.default_rng(1).normal(size=(_SIDE, _SIDE, 1))
    return np.clip(np.array([200, 150, 120]) + 4 * noise, 0, 255).astype(np.uint8)


def changed(levels: float, soft: float) -> np.ndarray:
    """The same with so many levels more inside of an ellipse, with a border of that sigma."""
    mask = np.zeros((_SIDE, _SIDE), np.float32)
    cv2.ellipse(mask, (150, 150), (95, 115), 0, 0, 360, 1.0, cv2.FILLED)
    mask = cv2.GaussianBlur(mask, (0, 0), soft)[..., None]
    return np.clip(skin() + levels * mask, 0, 255).round().astype(np.uint8)


def lightness(pixels: np.ndarray) -> float:
    """Mean L of CIE Lab."""
    lab = cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    return float(lab[100:200, 100:200, 0].mean())


def test_what_is_unchanged_has_no_seam_no_ring_and_its_own_detail() -> None:
    border = Border.between(skin(), skin(), _MESH)
    assert border.seam(skin(), skin()) == 0
    assert border.ring(skin(), skin()) == 0
    assert border.sharpness(skin(), skin()) == 1
    assert border.error(skin(), skin()) == 0


def test_a_ring_is_the_step_of_colour_across_the_border() -> None:
    result = changed(25, 1.0)
    step = lightness(result) - lightness(skin())
    ring = Border.between(skin(), result, _MESH).ring(skin(), result)
    assert abs(ring - step) < 0.15 * step


def test_a_hard_border_is_more_of_a_seam_than_a_soft_one() -> None:
    hard, soft = (changed(25, sigma) for sigma in (1.0, 8.0))
    seams = [Border.between(skin(), each, _MESH).seam(skin(), each) for each in (hard, soft)]
    assert seams[0] > 1.5 * seams[1] > 0


def test_a_blurred_face_has_less_detail_than_what_is_around() -> None:
    result = skin()
    result[60:240, 60:240] = cv2.GaussianBlur(skin(), (0, 0), 2)[60:240, 60:240]
    assert Border.between(skin(), result, _MESH).sharpness(skin(), result) < 0.5
