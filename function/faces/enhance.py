"""Enhancers: networks that make a face sharp again after a swap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import align, geometry
from function.faces.options import Mask
from function.faces.swappers import masks
from function.faces.swappers.paste import paste

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.options import SwapOptions
    from function.faces.swappers.masks import Occlusion
    from function.runtime.engine import Engine


@dataclass(frozen=True, slots=True, eq=False)
class EnhancerFamily:
    """What a family wants: the side of its images, and where the five points belong in them."""

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
        spec: what it wants.
    """

    def __init__(self, engine: Engine, spec: EnhancerFamily) -> None:
        self._engine, self.spec = engine, spec

    def reach(self, five: NDArray[np.float32]) -> NDArray[np.float32]:
        """See `Swapper.reach`: the crop."""
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
            occlusion: tells what covers a face.
            gray: whether the canvas must stay gray.
        """
        for places in align.rounds(faces, self.spec.template):
            self._enhance(canvas, [faces[n] for n in places], options, occlusion, gray=gray)

    def _enhance(
        self,
        canvas: NDArray[np.uint8],
        faces: Sequence[Face],
        options: SwapOptions,
        occlusion: Occlusion | None,
        *,
        gray: bool,
    ) -> None:
        """Enhance faces whose crops do not overlap."""
        size = self.spec.size
        places = [align.matrix(face.five, self.spec.template, size) for face in faces]
        crops = [
            geometry.crop(canvas, place, (size, size), cv2.BORDER_REPLICATE) for place in places
        ]
        images = align.planes(np.stack(crops), 1 / 127.5, -1.0)
        results = self._engine.run(images)[0]
        levels = np.clip(results * np.float32(127.5) + np.float32(128), 0, 255).astype(np.uint8)
        shares = [masks.box(size) * np.float32(options.enhance / 100)] * len(faces)
        if occlusion and options.uses(Mask.OCCLUSION, else_=True):
            seen = occlusion.masks(crops)
            shares = [np.minimum(*pair) for pair in zip(shares, seen, strict=True)]
        patches = np.ascontiguousarray(levels.transpose(0, 2, 3, 1))
        for patch, share, place in zip(patches, shares, places, strict=True):
            paste(canvas, patch, share, place, gray=gray)
