"""CenterFace: where faces are. One pass at one scale; `search` decides which passes to make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.face import Box, Detection

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.runtime.engine import Engine

_STRIDE = 32
_CELL = 4


class CenterFace:
    """The embedded detector.

    Args:
        engine: runs `centerface.onnx` (float32 [B, 3, H, W], RGB 0–255, sides multiples of 32).
        threshold: least score of a face.
    """

    def __init__(self, engine: Engine, threshold: float = 0.5) -> None:
        self._engine = engine
        self._threshold = threshold

    def detect(
        self, pixels: NDArray[np.uint8], long_side: int = 640, found_by: str = "plain"
    ) -> list[Detection]:
        """Faces of an image, best score first.

        Args:
            pixels: uint8 [H, W, 3] RGB.
            long_side: the image is shrunk (never enlarged) to this many pixels before detection.
            found_by: recorded in each detection.
        """
        height, width = pixels.shape[:2]
        blob = prepare(pixels, long_side)
        outputs = self._engine.run(blob)
        scale = (width / blob.shape[3], height / blob.shape[2])
        return decode(outputs, scale, self._threshold, found_by)


def prepare(pixels: NDArray[np.uint8], long_side: int) -> NDArray[np.float32]:
    """Resize to the network's input: float32 [1, 3, H', W'], RGB 0–255, sides multiples of 32."""
    height, width = pixels.shape[:2]
    scale = min(1.0, long_side / max(height, width))
    size = tuple(max(_STRIDE, -int(-side * scale // _STRIDE) * _STRIDE) for side in (width, height))
    shrinks = size[0] < width or size[1] < height
    resized = cv2.resize(
        pixels, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    )
    return np.ascontiguousarray(resized.transpose(2, 0, 1)[None], dtype=np.float32)


def decode(
    outputs: list[NDArray[np.float32]],
    scale: tuple[float, float],
    threshold: float,
    found_by: str = "plain",
) -> list[Detection]:
    """Turn the network's four maps of one image into detections, best first, overlaps removed.

    Args:
        outputs: heat [1, 1, h, w], log size (h, w) [1, 2, h, w], offset (y, x) [1, 2, h, w] and five
            points (y, x pairs) [1, 10, h, w].
        scale: (x, y) factors from network pixels to image pixels.
        threshold: least score.
        found_by: recorded in each detection.
    """
    heat, size, offset, points = (output[0] for output in outputs)
    rows, cols = np.nonzero(heat[0] > threshold)
    if rows.size == 0:
        return []
    scores = heat[0, rows, cols]
    h, w = _CELL * np.exp(size[:, rows, cols])
    cy = _CELL * (rows + offset[0, rows, cols] + 0.5)
    cx = _CELL * (cols + offset[1, rows, cols] + 0.5)
    left, top = cx - w / 2, cy - h / 2
    keep = np.asarray(
        cv2.dnn.NMSBoxes(np.stack([left, top, w, h], 1).tolist(), scores.tolist(), threshold, 0.3)
    ).ravel()
    pairs = points[:, rows, cols].reshape(5, 2, -1)
    xs, ys = left + pairs[:, 1] * w, top + pairs[:, 0] * h
    sx, sy = scale
    return [
        Detection(
            Box(left[i] * sx, top[i] * sy, (left[i] + w[i]) * sx, (top[i] + h[i]) * sy),
            np.stack([xs[:, i] * sx, ys[:, i] * sy], 1).astype(np.float32),
            float(scores[i]),
            found_by,
        )
        for i in keep
    ]
