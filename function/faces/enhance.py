"""Enhancers: networks that make a face sharp again after a swap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import align, geometry
from function.faces.options import Mask
from function.faces.swappers import crop_masks
from function.faces.swappers.paste import paste

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.options import SwapOptions
    from function.faces.swappers.crop_masks import Occlusion
    from function.runtime.engine import Engine


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
    """

    def __init__(self, engine: Engine, spec: EnhancerFamily) -> None:
        self._engine, self.spec = engine, spec

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
        size = self.spec.size
        for places in align.rounds(faces, self.spec.template):
            matrices = [align.matrix(faces[n].five, self.spec.template, size) for n in places]
            crops = [
                geometry.crop(canvas, matrix, (size, size), cv2.BORDER_REPLICATE)
                for matrix in matrices
            ]
            images = align.planes(np.stack(crops), 1 / 127.5, -1.0)
            results = self._engine.run(images)[0]
            levels = np.clip(results * np.float32(127.5) + np.float32(128), 0, 255)
            shares = [crop_masks.box(size) * np.float32(options.enhance / 100)] * len(places)
            if occlusion and options.uses(Mask.OCCLUSION, else_=True):
                seen = occlusion.masks(crops)
                shares = [np.minimum(*pair) for pair in zip(shares, seen, strict=True)]
            patches = np.ascontiguousarray(levels.astype(np.uint8).transpose(0, 2, 3, 1))
            for patch, share, matrix in zip(patches, shares, matrices, strict=True):
                paste(canvas, patch, share, matrix, gray=gray)
