"""Whether a picture shows what must not be swapped: one number from 0 to 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.runtime.engine import Engine

_SIDE, _AROUND = 224, 256
_MEAN = np.array((104, 117, 123), np.float32)  # of blue, green and red in the pictures of ImageNet
_QUALITY = 75
_LARGE = 4 * _AROUND


class Content(Protocol):
    """A model of what pictures show."""

    def look(self, pixels: NDArray[np.uint8]) -> float:
        """How likely it is that a picture is sexual, from 0 to 1.

        Args:
            pixels: uint8 [H, W, 3] RGB.
        """
        ...


class OpenNsfw:
    """Yahoo's open_nsfw, as converters to ONNX write it.

    Args:
        engine: runs float32 [N, 224, 224, 3], BGR less the mean of ImageNet, to float32 [N, 2].
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def look(self, pixels: NDArray[np.uint8]) -> float:
        """How likely it is that a picture is sexual, from 0 to 1."""
        return float(self._engine.run(item(pixels)[None])[0][0, 1])


def item(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """A picture as the network knows pictures: squeezed to a square, its middle, a JPEG once.

    The network was trained on pictures that had been saved that way; those that were not, above all
    noisy ones, get other scores.

    Args:
        pixels: uint8 [H, W, 3] RGB.

    Returns:
        float32 [224, 224, 3] BGR less the mean.
    """
    size, margin = (_AROUND, _AROUND), (_AROUND - _SIDE) // 2
    step = min(pixels.shape[:2]) // _LARGE
    if step > 1:  # leaves out pixels that the mean of areas would only make slow
        pixels = pixels[::step, ::step]
    grows = min(pixels.shape[:2]) < _AROUND
    interpolation = cv2.INTER_LINEAR if grows else cv2.INTER_AREA
    square = cv2.resize(pixels, size, interpolation=interpolation)
    middle = np.ascontiguousarray(square[margin:-margin, margin:-margin, ::-1])
    _, saved = cv2.imencode(".jpg", middle, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    opened = np.asarray(cv2.imdecode(saved, cv2.IMREAD_COLOR), np.float32)
    return opened - _MEAN
