"""Put the finished face on the target: details by a narrow mask, low frequencies by a wide one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces.swappers.mesh.warp import Enlarged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.swappers.mesh.grain import Noise


@dataclass(frozen=True, slots=True)
class Layers:
    """How a drawn face is put on a target, on the grid.

    Attributes:
        gain, offset: float32 [h, w, 3], of the drawn face.
        soft: float32 [h, w], the mask, 0–1.
        band: float32 [h, w, 3], see `second_band`.
    """

    gain: NDArray[np.float32]
    offset: NDArray[np.float32]
    soft: NDArray[np.float32]
    band: NDArray[np.float32]


def second_band(
    face: NDArray[np.float32],
    target: NDArray[np.float32],
    soft: NDArray[np.float32],
    where: NDArray[np.float32],
    sigma: float,
) -> NDArray[np.float32]:
    """What to add to an alpha blend so that its low frequencies meet over a wider border.

    Two bands of Burt and Adelson 1983: low frequencies are mixed by the blurred mask, which is an
    alpha blend of everything plus their difference times that of the masks.

    Args:
        face: float32 [h, w, 3] RGB 0–255.
        target: float32 [h, w, 3] RGB 0–255.
        soft: float32 [h, w], the mask.
        where: float32 [h, w], how much it may change each cell, 0–1: only skin may run into skin.
        sigma: of the low frequencies and of their mask, in cells.

    Returns:
        float32 [h, w, 3] levels.
    """
    apart = blurred(face - target, sigma)
    return (blurred(soft, sigma) - soft)[..., None] * apart * where[..., None]


def blend(
    region: NDArray[np.uint8],
    drawn: NDArray[np.uint8],
    layers: Layers,
    grain: Noise | None,
) -> None:
    """Put the corrected face on the region, in place.

    Args:
        region: uint8 [H, W, 3] RGB.
        drawn: uint8 [H, W, 3] RGB, the face before its correction.
        layers: on the grid.
        grain: what the face lacks.
    """
    size = region.shape[1], region.shape[0]
    gain, offset, share, low = (
        Enlarged(part, size) for part in (layers.gain, layers.offset, layers.soft, layers.band)
    )
    for rows in share.bands():
        face = cv2.multiply(drawn[rows], gain[rows], dtype=cv2.CV_32F)
        face = cv2.add(face, offset[rows], dst=face)
        if grain:
            noise = cv2.cvtColor(grain.rows(rows, size[0]), cv2.COLOR_GRAY2RGB)
            face = cv2.add(face, noise, dst=face)
        face = np.clip(face, 0, 255, out=face)
        weight, under = share[rows], region[rows]
        mixed = cv2.blendLinear(face, under.astype(np.float32), weight, 1 - weight)
        mixed = cv2.add(mixed, low[rows], dst=mixed)
        under[:] = cv2.convertScaleAbs(np.maximum(mixed, 0, out=mixed))


def blurred(image: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    """A Gaussian mean, of the same shape."""
    soft = cv2.GaussianBlur(image, (0, 0), max(sigma, 0.3), borderType=cv2.BORDER_REPLICATE)
    return np.asarray(soft, np.float32)
