"""Swaps by neural networks.

A face is cut out so that its five points lie where the network was trained to find them, made anew
with the identity of the source, and blended back. Faces whose crops do not overlap run as one
batch, and so do the tiles of a face that is made larger than the network makes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import align, geometry, pose
from function.faces.options import Mask
from function.faces.swappers import crop_masks
from function.faces.swappers.paste import paste
from function.quality_warning import QualityWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.faces.face import Face, Fitted
    from function.faces.options import SwapOptions
    from function.faces.swappers.crop_masks import Occlusion, Regions
    from function.faces.swappers.generator import Generator, SwapperFamily
    from function.faces.swappers.protocol import SourceFace
    from function.runtime.engine import Engine
    from function.telemetry.timings import Timings

    Rows = NDArray[np.float32]

_COVERED = 0.15  # share of the middle of a face that is hidden


class NeuralSwapper:
    """Swaps faces by a model.

    Args:
        generator: the model.
        convert: the converter of embeddings that it may need.
        occlusion: finds what covers a face.
        regions: finds the parts of a face.
    """

    def __init__(
        self,
        generator: Generator,
        convert: Engine | None = None,
        occlusion: Occlusion | None = None,
        regions: Regions | None = None,
    ) -> None:
        self._generator, self._convert = generator, convert
        self._occlusion, self._regions = occlusion, regions

    def reach(self, fitted: Fitted) -> NDArray[np.float32]:
        """The corners of the crop in the image, float32 [4, 2]."""
        return align.corners(fitted.five, self._generator.spec.template)

    def swap_all(
        self,
        canvas: NDArray[np.uint8],
        targets: Sequence[Face],
        sources: Sequence[SourceFace],
        options: SwapOptions,
        *,
        gray: bool,
        timings: Timings,  # noqa: ARG002 - engines are measured by themselves
    ) -> list[tuple[QualityWarning, ...]]:
        """Replace the targets as one batch, unless crops overlap; their warnings."""
        found: dict[int, tuple[QualityWarning, ...]] = {}
        for places in align.rounds(targets, self._generator.spec.template):
            direct = [n for n in places if self._direct(canvas, targets[n], options, gray=gray)]
            for some in (direct, [n for n in places if n not in direct]):
                if faces := [targets[n] for n in some]:
                    theirs = [sources[n] for n in some]
                    how = {"gray": gray, "direct": some is direct}
                    warnings = self._swap(canvas, faces, theirs, options, **how)
                    found.update(zip(some, warnings, strict=True))
        return [found[n] for n in range(len(targets))]

    def _direct(
        self, canvas: NDArray[np.uint8], target: Face, options: SwapOptions, *, gray: bool
    ) -> bool:
        """Whether the model can cut a face out and put it back itself."""
        cutouts, spec = self._generator.cutouts, self._generator.spec
        if cutouts is None or gray or (self._regions and options.uses(Mask.REGION)):
            return False
        size = spec.size * _factor(target, spec, options)
        return cutouts.take(canvas, align.matrix(target.five, spec.template, size), size)

    def _swap(
        self,
        canvas: NDArray[np.uint8],
        targets: Sequence[Face],
        sources: Sequence[SourceFace],
        options: SwapOptions,
        *,
        gray: bool,
        direct: bool,
    ) -> list[tuple[QualityWarning, ...]]:
        """Replace faces whose crops do not overlap; see `_direct`."""
        spec = self._generator.spec
        sizes = [spec.size * _factor(target, spec, options) for target in targets]
        places = [
            align.matrix(target.five, spec.template, size)
            for target, size in zip(targets, sizes, strict=True)
        ]
        shown = self._occlusion and options.uses(Mask.OCCLUSION, else_=True)
        crops = [
            geometry.crop(canvas, place, (size, size), cv2.BORDER_REPLICATE)
            for place, size in zip(places, sizes, strict=True)
            if shown or not direct
        ]
        inputs = self._generator.source_inputs(sources, targets, options.weight, self._convert)
        seen = self._occlusion.masks(crops) if self._occlusion and shown else []
        made = [] if direct else self._generator.make(crops, inputs)
        soft = [crop_masks.box(size) for size in sizes]
        if seen:
            soft = [np.minimum(*pair) for pair in zip(soft, seen, strict=True)]
        if made and self._regions and options.uses(Mask.REGION):
            parts = self._regions.masks(made)
            soft = [np.minimum(*pair) for pair in zip(soft, parts, strict=True)]
        for n, target in enumerate(targets):
            if target.outline is not None and options.uses(Mask.AREA):
                outline = geometry.apply(places[n], target.outline)
                soft[n] = np.minimum(soft[n], crop_masks.area(outline, sizes[n]))
        if direct and (cutouts := self._generator.cutouts):
            cutouts.change(canvas, places, soft, inputs)
        else:
            for patch, mask, place in zip(made, soft, places, strict=True):
                paste(canvas, patch, mask, place, gray=gray)
        covered = [_covered(mask) for mask in seen] or [False] * len(targets)
        return [
            _warnings(target, source, covered=hidden)
            for target, source, hidden in zip(targets, sources, covered, strict=True)
        ]


def _factor(face: Face, spec: SwapperFamily, options: SwapOptions) -> int:
    """How many times the network's size a face is made."""
    if options.boost is not None:
        return max(1, options.boost // spec.size)
    edge = align.corners(face.five, spec.template)
    side = float(np.linalg.norm(edge[1] - edge[0]))
    return max(1, min(round(side / spec.size), spec.made // spec.size))


def _covered(seen: Rows) -> bool:
    """Whether something covers much of the middle of a face."""
    quarter = len(seen) // 4
    return bool(1 - seen[quarter:-quarter, quarter:-quarter].mean() > _COVERED)


def _warnings(target: Face, source: SourceFace, *, covered: bool) -> tuple[QualityWarning, ...]:
    seen = {
        QualityWarning.EXTREME_POSE: pose.extreme(target.pose, source.face.pose),
        QualityWarning.OCCLUDED: covered,
    }
    return tuple(warning for warning, holds in seen.items() if holds)
