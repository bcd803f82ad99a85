"""Where faces are in one view of an image. `search` decides which views to take.

CenterFace is here, detectors with anchors are in `anchors`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import cv2
import numpy as np

from function.faces.exposure import lifted
from function.faces.face import Box, Detection
from function.faces.geometry import halve
from function.runtime.engine import PROVIDERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.runtime.engine import Engine

SIDE = 640
"""Of the largest view, and of the square that networks see which take one shape only."""

_STRIDE = 32
_CELL = 4


@dataclass(frozen=True, slots=True)
class View:
    """A window onto an image as the network sees it.

    Attributes:
        name: recorded in the detections.
        window: (left, top, right, bottom) in image pixels; it may reach over the border, where the
            network sees the image's mean colour.
        size: (width, height) to which the window is resized before it is turned.
        turn: quarter turns clockwise.
    """

    name: str
    window: tuple[int, int, int, int]
    size: tuple[int, int]
    turn: int = 0

    @property
    def scale(self) -> tuple[float, float]:
        """(x, y) network pixels for one image pixel."""
        left, top, right, bottom = self.window
        return self.size[0] / (right - left), self.size[1] / (bottom - top)

    @property
    def canvas(self) -> tuple[int, int]:
        """(width, height) before the turn, rounded up to what the network takes."""
        width, height = (-(-side // _STRIDE) * _STRIDE for side in self.size)
        return width, height

    def to_image(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.float32]:
        """Take network positions to the image: float32 [..., 2] (x, y)."""
        width, height = self.canvas
        turned = ((x, y), (y, height - x), (width - x, height - y), (width - y, x))
        x, y = turned[self.turn % 4]
        fx, fy = self.scale
        return np.stack([x / fx + self.window[0], y / fy + self.window[1]], -1).astype(np.float32)


class Detector(Protocol):
    """Finds faces in one view."""

    def detect(
        self, pixels: NDArray[np.uint8], view: View, threshold: float = 0.5
    ) -> list[Detection]:
        """Faces in one view of an image, best score first, overlaps removed; one run.

        Args:
            pixels: uint8 [H, W, 3] RGB.
            view: which part of it, and how large.
            threshold: least score of a face.
        """
        ...


class CenterFace:
    """The embedded detector.

    Args:
        engine: runs `centerface.onnx` (float32 [B, 3, H, W], RGB 0–255, sides multiples of 32).
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def detect(
        self, pixels: NDArray[np.uint8], view: View, threshold: float = 0.5
    ) -> list[Detection]:
        """Faces in one view of an image, best score first, overlaps removed."""
        fixed = self._engine.provider != PROVIDERS["cpu"]
        return decode(self._engine.run(prepare(pixels, view, fixed=fixed)), view, threshold)


def prepare(pixels: NDArray[np.uint8], view: View, *, fixed: bool = False) -> NDArray[np.float32]:
    """CenterFace's input: float32 [1, 3, H', W'], RGB 0–255, sides multiples of 32.

    Args:
        pixels: uint8 [H, W, 3] RGB.
        view: which part of it, and how large.
        fixed: whether it is a square of `SIDE` whatever the view is. A GPU compiles or searches for
            each new shape, which takes it longer than any number of pixels; a CPU does not.
    """
    seen = square(pixels, view) if fixed else rendered(pixels, view)[None]
    return np.ascontiguousarray(seen.transpose(0, 3, 1, 2), dtype=np.float32)


def square(pixels: NDArray[np.uint8], view: View) -> NDArray[np.uint8]:
    """What a network sees in a view, in the upper left of a black square: [1, 640, 640, 3]."""
    seen = rendered(pixels, view)
    height, width = seen.shape[:2]
    found = np.zeros((1, SIDE, SIDE, 3), np.uint8)
    found[0, :height, :width] = seen
    return found


def rendered(pixels: NDArray[np.uint8], view: View) -> NDArray[np.uint8]:
    """What a network sees in a view: uint8 [H', W', 3] RGB, sides multiples of 32."""
    height, width = pixels.shape[:2]
    left, top, right, bottom = view.window
    fx, fy = view.scale
    x0, x1, y0, y1 = max(left, 0), min(right, width), max(top, 0), min(bottom, height)
    part, factor = halve(pixels[y0:y1, x0:x1], min(1 / fx, 1 / fy))
    x, y = round((x0 - left) * fx), round((y0 - top) * fy)
    size = (
        max(1, round((x0 + part.shape[1] * factor - left) * fx) - x),
        max(1, round((y0 + part.shape[0] * factor - top) * fy) - y),
    )
    part = lifted(np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_LINEAR), np.uint8))
    canvas = view.canvas
    if canvas != size:
        rest = canvas[0] - size[0] - x, canvas[1] - size[1] - y
        part = cv2.copyMakeBorder(
            part, y, rest[1], x, rest[0], cv2.BORDER_CONSTANT, value=cv2.mean(part)
        )
    return np.rot90(part, -view.turn)


def decode(outputs: list[NDArray[np.float32]], view: View, threshold: float) -> list[Detection]:
    """Turn the network's four maps of one view into detections, best first, overlaps removed.

    Args:
        outputs: heat [1, 1, h, w], log size (h, w) [1, 2, h, w], offset (y, x) [1, 2, h, w] and
            five points (y, x pairs) [1, 10, h, w].
        view: what the network saw.
        threshold: least score.
    """
    heat, size, offset, points = (output[0] for output in outputs)
    rows, cols = np.nonzero(heat[0] > threshold)
    if rows.size == 0:
        return []
    scores = heat[0, rows, cols]
    h, w = _CELL * np.exp(size[:, rows, cols])
    top = _CELL * (rows + offset[0, rows, cols] + 0.5) - h / 2
    left = _CELL * (cols + offset[1, rows, cols] + 0.5) - w / 2
    pairs = points[:, rows, cols].reshape(5, 2, -1)
    five = np.stack([left + pairs[:, 1] * w, top + pairs[:, 0] * h], -1).transpose(1, 0, 2)
    return best(np.stack([left, top, left + w, top + h], 1), five, scores, view, 0.3)


def best(
    boxes: NDArray[np.floating],
    five: NDArray[np.floating],
    scores: NDArray[np.floating],
    view: View,
    overlap: float,
) -> list[Detection]:
    """Detections in the image, best first, without those that overlap a better one.

    Args:
        boxes: [n, 4] left, top, right, bottom in network pixels.
        five: [n, 5, 2] points (x, y) in network pixels.
        scores: [n].
        view: what the network saw.
        overlap: the most that two may have in common, as a share of what they cover together.
    """
    sides = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)
    found = cv2.dnn.NMSBoxes(sides.tolist(), scores.tolist(), 0.0, overlap)
    keep = np.ravel(found).astype(np.intp)  # of nothing it makes an empty tuple
    points = view.to_image(five[keep, :, 0], five[keep, :, 1])
    ends = view.to_image(boxes[keep, 0::2], boxes[keep, 1::2])
    low, high = ends.min(1).tolist(), ends.max(1).tolist()
    return [
        Detection(Box(*low[i], *high[i]), points[i], float(scores[k]), view.name)
        for i, k in enumerate(keep)
    ]
