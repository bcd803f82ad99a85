"""Photos in other light, of other size and quality."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]
    Change = tuple[str, Callable[[Pixels], Pixels]]


def _curve(pixels: Pixels, gain: NDArray[np.floating] | float, power: float = 1.0) -> Pixels:
    """Other light: linear light times `gain`, to a `power`."""
    linear = (pixels / 255.0) ** 2.2
    return np.asarray((np.clip(linear * gain, 0, 1) ** (power / 2.2) * 255).round(), np.uint8)


def _side(pixels: Pixels) -> Pixels:
    """Light from the left: eight times as much there as on the right."""
    ramp = np.linspace(1, -1, pixels.shape[1])
    return _curve(pixels, (2.0 ** (1.5 * np.tanh(2.5 * ramp)))[None, :, None] * 0.8)


def _resized(pixels: Pixels, factor: float) -> Pixels:
    how = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=how), np.uint8)


def _jpeg(pixels: Pixels, quality: int) -> Pixels:
    _, data = cv2.imencode(".jpg", pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.ascontiguousarray(cv2.imdecode(data, cv2.IMREAD_COLOR)[..., ::-1])


def _grain(pixels: Pixels, levels: float = 14.0) -> Pixels:
    """Film grain: soft noise, the same in all channels."""
    noise = np.random.default_rng(5).normal(size=pixels.shape[:2])
    noise = cv2.GaussianBlur(noise, (0, 0), 0.8)
    noise *= levels / noise.std()
    return np.asarray(np.clip(pixels + noise[..., None], 0, 255).round(), np.uint8)


def _gray(pixels: Pixels) -> Pixels:
    return np.asarray(cv2.cvtColor(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), 8), np.uint8)


def _turned(pixels: Pixels) -> Pixels:
    height, width = pixels.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), 35, 0.8)
    return np.asarray(cv2.warpAffine(pixels, matrix, (width, height), borderMode=1), np.uint8)


def _blurred(pixels: Pixels) -> Pixels:
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), 3.0), np.uint8)


_WARM, _COLD = np.array([1.5, 1.0, 0.5]), np.array([0.7, 0.95, 1.4])
TARGETS: dict[str, Change] = {
    "side": ("lit from one side", _side),
    "dark": ("nearly black", lambda pixels: _curve(pixels, 0.04)),
    "bright": ("overexposed", lambda pixels: _curve(pixels, 3.5)),
    "warm": ("in warm light", lambda pixels: _curve(pixels, _WARM)),
    "gray": ("without colour", _gray),
    "jpeg": ("with blocks of JPEG", lambda pixels: _jpeg(pixels, 12)),
    "grain": ("with film grain", _grain),
    "soft": ("out of focus", _blurred),
    "tiny": ("a tiny face", lambda pixels: _resized(pixels, 0.2)),
    "large": ("a large face", lambda pixels: _resized(pixels, 3.0)),
    "roll": ("head leaning", _turned),
    "mirror": ("mirrored", lambda pixels: np.ascontiguousarray(pixels[:, ::-1])),
}
SOURCES: dict[str, Change] = {
    "from-side": ("lit from one side", _side),
    "from-cold": ("in cold light", lambda pixels: _curve(pixels, _COLD)),
    "from-gray": ("without colour", _gray),
    "from-tiny": ("a tiny face", lambda pixels: _resized(pixels, 0.2)),
    "from-soft": ("out of focus", _blurred),
    "from-bright": ("overexposed", lambda pixels: _curve(pixels, 3.5)),
}
