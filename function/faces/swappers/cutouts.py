"""Networks whose graphs cut faces out of the picture themselves, and put them back.

Such a graph gets a cutout, a square piece of the picture as it is, and gives the same piece with
the face changed: warping, normalising and blending are inside, so a piece of the picture is all
that goes to the device, once, and all that comes back, once, as bytes. `function.weights.cutout`
makes these graphs; `Cutouts` says what goes in and comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import geometry
from function.faces.swappers.crop_masks import STEPS
from function.faces.swappers.paste import bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.runtime.engine import Engine

    Crop = NDArray[np.uint8]
    Soft = NDArray[np.float32]
    Matrix = NDArray[np.float64]
    Rows = NDArray[np.float32]

_SMOOTH = (0.5, 2.0)
"""Between these scales, image → crop, four neighbours are enough both ways; see `geometry.crop`."""


@dataclass(frozen=True, slots=True, eq=False)
class Cutouts:
    """One such network.

    Attributes:
        engine: runs uint8 [N, side, side, 3] RGB, the cutouts; float32 [N, 2, 3], from pixels of
            the crop to the cutout, and [N, 2, 3], from those of the cutout to the crop, see
            `sampling`; uint8 [N, made, made], how much of the crop is replaced; and what else the
            network takes; to uint8 [N, side, side, 3] RGB.
        size: side of the images of the network.
        made: side of the crops that the graph makes, `size` or a multiple.
        side: of the cutouts.
    """

    engine: Engine
    size: int
    made: int
    side: int

    def take(self, canvas: Crop, place: Matrix, size: int) -> bool:
        """Whether a face can be changed this way, with the same result as by a crop.

        Args:
            canvas: uint8 [H, W, 3].
            place: float64 [2, 3], image → crop.
            size: side of the crop.
        """
        low, high = _SMOOTH
        scale = float(np.hypot(place[0, 0], place[1, 0]))
        left, top, right, bottom = bounds(canvas.shape, place, size)
        room = self.side - 1  # for the last neighbours
        small = right - left <= room and bottom - top <= room
        return size == self.made and low < scale < high and small

    def change(
        self,
        canvas: Crop,
        places: Sequence[Matrix],
        masks: Sequence[Soft],
        more: Sequence[Rows] | None = None,
    ) -> None:
        """Change faces in place, as one batch; their boxes must not overlap.

        Args:
            canvas: uint8 [H, W, 3] RGB.
            places: float64 [2, 3] each, image → crop.
            masks: float32 [made, made] each, how much of the crop counts, 0–1; 0 at its edge.
            more: what else the network gets, for each.
        """
        boxes = [bounds(canvas.shape, place, self.made) for place in places]
        height, width = canvas.shape[:2]
        corners = [
            (min(left, max(width - self.side, 0)), min(top, max(height - self.side, 0)))
            for left, top, _, _ in boxes
        ]
        there, back = zip(
            *(_both_ways(place, at) for place, at in zip(places, corners, strict=True)),
            strict=True,
        )
        changed = self._run(
            np.stack([self._cut(canvas, *corner) for corner in corners]),
            np.stack([sampling(each, self.side) for each in there]),
            np.stack([sampling(each, self.made) for each in back]),
            np.stack([np.rint(mask * np.float32(STEPS)).astype(np.uint8) for mask in masks]),
            more,
        )
        for (left, top, right, bottom), (x, y), result in zip(boxes, corners, changed, strict=True):
            canvas[top:bottom, left:right] = result[top - y : bottom - y, left - x : right - x]

    def make(self, crops: Sequence[Crop], more: Sequence[Rows] | None = None) -> list[Crop]:
        """Make faces anew whose crops are there already, for what `take` refuses.

        Each crop takes the place of cutouts, as many as its small images of the network's size
        need (see `generator.split`); where these do not fill the last one, they are in it again.

        Args:
            crops: uint8 [k · size, k · size, 3] RGB each; k may differ.
            more: what else the network gets, for each.

        Returns:
            uint8 of the same shapes.
        """
        factor = self.made // self.size
        packed = [_packed(crop, self.size, factor) for crop in crops]
        counts = [len(each) for each in packed]
        rows = sum(counts)
        cutouts = np.zeros((rows, self.side, self.side, 3), np.uint8)
        cutouts[:, : self.made, : self.made] = np.concatenate(packed)
        same = np.eye(2, 3)
        changed = self._run(
            cutouts,
            np.stack([sampling(same, self.side)] * rows),
            np.stack([sampling(same, self.made)] * rows),
            np.full((rows, self.made, self.made), STEPS, np.uint8),
            more and [each for each, count in zip(more, counts, strict=True) for _ in range(count)],
        )
        made = np.split(changed[:, : self.made, : self.made], np.cumsum(counts)[:-1])
        return [
            _unpacked(rows, self.size, len(crop)) for rows, crop in zip(made, crops, strict=True)
        ]

    def _cut(self, canvas: Crop, left: int, top: int) -> Crop:
        """The cutout with that corner; a canvas that is smaller ends in repeats of its border."""
        found = canvas[top : top + self.side, left : left + self.side]
        down, right = (self.side - length for length in found.shape[:2])
        if not (down or right):
            return found
        return np.asarray(
            cv2.copyMakeBorder(found, 0, down, 0, right, cv2.BORDER_REPLICATE), np.uint8
        )

    def _run(
        self, cutouts: Crop, there: Rows, back: Rows, masks: Crop, more: Sequence[Rows] | None
    ) -> Crop:
        inputs: list[NDArray[np.generic]] = [cutouts, there, back, masks]
        inputs += [] if more is None else [np.stack(more)]
        return np.asarray(self.engine.run(*inputs)[0], np.uint8)  # type: ignore[arg-type]


def sampling(matrix: Matrix, side: int) -> Rows:
    """An affine map to pixels as one to ONNX's `GridSample`, which counts a side as -1 to 1.

    Args:
        matrix: float64 [2, 3], to pixels of an image; whole numbers are the middles of pixels.
        side: of that image.

    Returns:
        float32 [2, 3].
    """
    found = matrix * (2 / side)
    found[:, 2] += 1 / side - 1
    return np.asarray(found, np.float32)


def _both_ways(place: Matrix, corner: tuple[int, int]) -> tuple[Matrix, Matrix]:
    """Crop → cutout, and cutout → crop, from image → crop and the corner of the cutout."""
    there, back = geometry.invert(place), place.copy()
    there[:, 2] -= corner
    back[:, 2] += back[:, :2] @ corner
    return there, back


def _packed(crop: Crop, size: int, factor: int) -> Crop:
    """A crop of any multiple of `size` as crops of `factor` times that: uint8 [n, …, …, 3]."""
    k, room = len(crop) // size, factor**2
    small = crop.reshape(size, k, size, k, 3).transpose(1, 3, 0, 2, 4).reshape(k * k, -1)
    filled = np.resize(small, (-(-k * k // room) * room, small.shape[1]))
    split = filled.reshape(-1, factor, factor, size, size, 3).transpose(0, 3, 1, 4, 2, 5)
    return np.ascontiguousarray(split).reshape(-1, factor * size, factor * size, 3)


def _unpacked(rows: Crop, size: int, side: int) -> Crop:
    """The crop of that side again."""
    factor, k = rows.shape[1] // size, side // size
    split = rows.reshape(-1, size, factor, size, factor, 3).transpose(0, 2, 4, 1, 3, 5)
    small = split.reshape(-1, size, size, 3)[: k * k]
    joined = small.reshape(k, k, size, size, 3).transpose(2, 0, 3, 1, 4)
    return np.ascontiguousarray(joined).reshape(side, side, 3)
