"""Plane geometry on points and images that several face modules need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def similarity(src: NDArray[np.floating], dst: NDArray[np.floating]) -> NDArray[np.float64]:
    """Least-squares rotation, uniform scale and shift that takes `src` to `dst`.

    Args:
        src: float [n, 2] points (x, y), n ≥ 2, not all equal.
        dst: float [n, 2].

    Returns:
        float64 [2, 3] matrix M with dst ≈ M · (x, y, 1). No reflection. (Umeyama 1991, eq. 40–43; in
        the plane it is one complex linear regression, which is what is computed here.)
    """
    a = src[:, 0] + 1j * src[:, 1]
    b = dst[:, 0] + 1j * dst[:, 1]
    a0, b0 = a.mean(), b.mean()
    r = np.vdot(a - a0, b - b0) / np.vdot(a - a0, a - a0).real
    t = b0 - r * a0
    return np.array([[r.real, -r.imag, t.real], [r.imag, r.real, t.imag]])


def apply(matrix: NDArray[np.floating], points: NDArray[np.floating]) -> NDArray[np.float32]:
    """Map float [n, 2] points by a [2, 3] matrix; float32 [n, 2]."""
    return (points @ matrix[:, :2].T + matrix[:, 2]).astype(np.float32)


def invert(matrix: NDArray[np.floating]) -> NDArray[np.float64]:
    """The inverse of a [2, 3] affine matrix."""
    return np.asarray(cv2.invertAffineTransform(matrix))


def crop(
    pixels: NDArray[np.uint8],
    matrix: NDArray[np.floating],
    size: tuple[int, int],
    border: int = cv2.BORDER_CONSTANT,
) -> NDArray[np.uint8]:
    """Cut out `size` (width, height) pixels, mapped by `matrix` (image → crop), without aliasing.

    `cv2.warpAffine` samples four neighbours whatever the scale, so an image that is shrunk by more
    than 2 is first halved (area average) as often as needed.

    Args:
        pixels: uint8 [H, W, 3] RGB.
        matrix: float [2, 3].
        size: (width, height) of the crop.
        border: OpenCV border mode for what lies outside the image.

    Returns:
        uint8 [height, width, 3].
    """
    scale = float(np.sqrt(abs(np.linalg.det(matrix[:, :2]))))
    if scale < 0.5:
        pixels, matrix = _shrink_for(pixels, matrix, size, scale)
    return np.asarray(
        cv2.warpAffine(pixels, matrix, size, flags=cv2.INTER_LINEAR, borderMode=border),
        dtype=np.uint8,
    )


def _shrink_for(
    pixels: NDArray[np.uint8],
    matrix: NDArray[np.floating],
    size: tuple[int, int],
    scale: float,
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Area-shrink the part of the image that the crop needs by 1/scale; the matrix to go on with."""
    corners = apply(
        invert(matrix), np.array([[0, 0], [size[0], 0], [0, size[1]], [size[0], size[1]]])
    )
    margin = 2 / scale
    left, top = np.maximum(np.floor(corners.min(0) - margin), 0).astype(int)
    right, bottom = np.ceil(corners.max(0) + margin).astype(int)
    part = pixels[top:bottom, left:right]
    if part.size == 0:
        return pixels, np.asarray(matrix, np.float64)
    height, width = part.shape[:2]
    new = max(1, round(width * scale)), max(1, round(height * scale))
    part = cv2.resize(part, new, interpolation=cv2.INTER_AREA)
    fx, fy = width / new[0], height / new[1]
    # pixel centres: x = fx · (x' + 0.5) − 0.5 + left
    back = np.array(
        [[fx, 0, (fx - 1) / 2 + left], [0, fy, (fy - 1) / 2 + top], [0, 0, 1]], np.float64
    )
    return part, np.asarray(matrix, np.float64) @ back
