"""Plane geometry on points and images that several face modules need."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_T = TypeVar("_T", np.uint8, np.float32)


def similarity(src: NDArray[np.floating], dst: NDArray[np.floating]) -> NDArray[np.float64]:
    """Least-squares rotation, uniform scale and shift that takes `src` to `dst`.

    Args:
        src: float [n, 2] points (x, y), n ≥ 2, not all equal.
        dst: float [n, 2].

    Returns:
        float64 [2, 3] matrix M with dst ≈ M · (x, y, 1). No reflection. (Umeyama 1991, eq. 40–43;
        in the plane it is one complex linear regression, which is what is computed here.)
    """
    a = src[:, 0] + 1j * src[:, 1]
    b = dst[:, 0] + 1j * dst[:, 1]
    a0, b0 = a.mean(), b.mean()
    r = np.vdot(a - a0, b - b0) / np.vdot(a - a0, a - a0).real
    t = b0 - r * a0
    return np.array([[r.real, -r.imag, t.real], [r.imag, r.real, t.imag]])


def apply(matrix: NDArray[np.floating], points: NDArray[np.floating]) -> NDArray[np.float32]:
    """Map float [n, 2] points by a [2, 3] matrix; float32 [n, 2]."""
    return np.asarray(points @ matrix[:, :2].T + matrix[:, 2], np.float32)


def invert(matrix: NDArray[np.floating]) -> NDArray[np.float64]:
    """The inverse of a [2, 3] affine matrix."""
    return np.asarray(cv2.invertAffineTransform(matrix))


def crop(
    pixels: NDArray[_T],
    matrix: NDArray[np.floating],
    size: tuple[int, int],
    border: int = cv2.BORDER_CONSTANT,
) -> NDArray[_T]:
    """Cut out `size` (width, height) pixels, mapped by `matrix` (image → crop), without aliasing.

    `cv2.warpAffine` samples four neighbours whatever the scale, so what is shrunk by more than 2 is
    halved first. It also takes no image with a side over 32,767, so it only gets the part it needs.

    Args:
        pixels: uint8 or float32 [H, W, 3] or [H, W].
        matrix: float [2, 3]; whole coordinates are the middles of pixels.
        size: (width, height) of the crop.
        border: OpenCV border mode for what lies outside the image.

    Returns:
        [height, width, 3] or [height, width], of the same type.
    """
    width, height = size
    scale = float(np.sqrt(abs(matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0])))
    corners = np.array([[0, 0], [width, 0], [0, height], [width, height]])
    seen = apply(invert(matrix), corners)
    margin = 2 / scale + 2
    # A crop that lies wholly outside still gets a pixel, so that there is a border to repeat.
    limit = np.array(pixels.shape[1::-1])
    left, top = np.clip(np.floor(seen.min(0) - margin), 0, limit - 1).astype(int)
    right, bottom = np.clip(np.ceil(seen.max(0) + margin), (left + 1, top + 1), limit).astype(int)
    part, factor = halve(pixels[top:bottom, left:right], 1 / scale)
    # One pixel of the part covers `factor` of the image: x = factor · x' + (factor − 1)/2 + left
    shift = (factor - 1) / 2 + np.array([left, top])
    linear = matrix[:, :2]
    matrix = np.column_stack([linear * factor, linear @ shift + matrix[:, 2]])
    return np.asarray(
        cv2.warpAffine(part, matrix, size, flags=cv2.INTER_LINEAR, borderMode=border), pixels.dtype
    )


def halve(pixels: NDArray[_T], most: float) -> tuple[NDArray[_T], int]:
    """Halve an image, averaging 2 × 2 pixels, as long as it shrinks by no more than `most`.

    Ten times faster than one `cv2.resize` by areas to any other size, and as free of aliasing when
    what remains (less than 2) is interpolated. An odd last row or column is left out.

    Args:
        pixels: uint8 or float32 [H, W, 3] or [H, W].
        most: how much smaller it may become.

    Returns:
        The same at H / factor × W / factor, and the factor, a power of 2.
    """
    factor = 1
    while 2 * factor <= most and min(pixels.shape[:2]) > 1:
        height, width = (side // 2 for side in pixels.shape[:2])
        even = pixels[: 2 * height, : 2 * width]
        pixels = np.asarray(cv2.resize(even, (width, height), interpolation=cv2.INTER_AREA))
        factor *= 2
    return pixels, factor


def median(values: NDArray[np.generic], axis: int | None = None) -> NDArray[np.floating]:
    """The median, of all values or along an axis, as `np.median` has it, but without NaN.

    That one imports numpy.ma, which costs every start 15 ms.
    """
    count = values.size if axis is None else values.shape[axis]
    middle = [(count - 1) // 2, count // 2]
    return np.asarray(np.partition(values, middle, axis).take(middle, axis).mean(axis))
