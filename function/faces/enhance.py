"""Enhancers: networks that make a face sharp again after a swap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import align, geometry
from function.faces.options import Mask
from function.faces.swappers import crop_masks
from function.faces.swappers.cutouts import Cutouts
from function.faces.swappers.paste import paste

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.options import SwapOptions
    from function.faces.swappers.crop_masks import Occlusion
    from function.runtime.engine import Engine

    Crop = NDArray[np.uint8]
    Matrix = NDArray[np.float64]
    Soft = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class EnhancerFamily:
    """The side of the images of a family, and where the five points belong in them."""

    size: int
    template: align.Template


SPECS = {
    "gfpgan_512": EnhancerFamily(512, align.FFHQ),
    "codeformer_512": EnhancerFamily(512, align.FFHQ),
    "restoreformer_512": EnhancerFamily(512, align.FFHQ),
    "gpen_256": EnhancerFamily(256, align.ARCFACE_128),
    "gpen_512": EnhancerFamily(512, align.FFHQ),
    "gpen_1024": EnhancerFamily(1024, align.FFHQ),
    "gpen_2048": EnhancerFamily(2048, align.FFHQ),
}


class Enhancer:
    """One enhancer.

    Args:
        engine: runs float32 [N, 3, size, size], RGB from -1 to 1, to the same.
        spec: of its family.
        cutout: the side of the cutouts that the engine takes instead; 0 if it takes no cutouts.
    """

    def __init__(self, engine: Engine, spec: EnhancerFamily, cutout: int = 0) -> None:
        self._engine, self.spec = engine, spec
        self._cutouts = Cutouts(engine, spec.size, spec.size, cutout) if cutout else None

    def reach(self, five: NDArray[np.float32]) -> NDArray[np.float32]:
        """The corners of the crop in the image, float32 [4, 2]."""
        return align.corners(five, self.spec.template)

    def enhance(
        self,
        canvas: NDArray[np.uint8],
        faces: Sequence[Face],
        options: SwapOptions,
        occlusion: Occlusion | None,
        *,
        gray: bool,
    ) -> None:
        """Enhance faces, in place; as one batch, unless crops overlap.

        Args:
            canvas: uint8 [H, W, 3] RGB.
            faces: where they are; nothing changes outside of their boxes.
            options: says how much of the result is used.
            occlusion: finds what covers a face.
            gray: whether the canvas must stay gray.
        """
        size, cutouts = self.spec.size, None if gray else self._cutouts
        if not options.uses(Mask.OCCLUSION, else_=True):
            occlusion = None
        box = crop_masks.stepped(crop_masks.box(size) * np.float32(options.enhance / 100))
        for places in align.rounds(faces, self.spec.template):
            direct: list[Matrix] = []
            rest: list[Matrix] = []
            for n in places:
                matrix = align.matrix(faces[n].five, self.spec.template, size)
                taken = cutouts and cutouts.take(canvas, matrix, size)
                (direct if taken else rest).append(matrix)
            if cutouts and direct:
                crops = _crops(canvas, direct, size) if occlusion else []
                cutouts.change(canvas, direct, _shares(box, crops, len(direct), occlusion))
            if rest:
                crops = _crops(canvas, rest, size)
                shares = _shares(box, crops, len(rest), occlusion)
                for patch, share, matrix in zip(self.make(crops), shares, rest, strict=True):
                    paste(canvas, patch, share, matrix, gray=gray)

    def make(self, crops: Sequence[Crop]) -> Sequence[Crop]:
        """Faces enhanced, as one batch: uint8 [size, size, 3] RGB each."""
        if self._cutouts:
            return self._cutouts.make(crops)
        results = self._engine.run(align.planes(np.stack(crops), 1 / 127.5, -1.0))[0]
        levels = np.clip(results * np.float32(127.5) + np.float32(128), 0, 255).astype(np.uint8)
        return list(np.ascontiguousarray(levels.transpose(0, 2, 3, 1)))


def _crops(canvas: Crop, matrices: Sequence[Matrix], size: int) -> list[Crop]:
    there = size, size
    return [geometry.crop(canvas, each, there, cv2.BORDER_REPLICATE) for each in matrices]


def _shares(
    box: Soft, crops: Sequence[Crop], count: int, occlusion: Occlusion | None
) -> list[Soft]:
    """How much of each crop counts."""
    if occlusion is None:
        return [box] * count
    return [np.minimum(box, seen) for seen in occlusion.masks(crops)]
