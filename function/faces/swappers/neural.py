"""Swaps by neural networks: one class over a table of what each family wants.

A face is cut out so that its five points lie where the network was trained to find them, made anew
with the identity of the source, and blended back. Faces whose crops do not overlap run as one
batch, and so do the tiles of a face that is made larger than the network makes one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import align, geometry, pose
from function.faces.face import embedding_of
from function.faces.options import Mask
from function.faces.swappers import emap, masks
from function.faces.swappers.paste import paste
from function.quality_warning import QualityWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.options import SwapOptions
    from function.faces.swappers.masks import Occlusion, Regions
    from function.faces.swappers.protocol import Source
    from function.runtime.engine import Engine

    Crop = NDArray[np.uint8]
    Rows = NDArray[np.float32]

_OWN_SIDE = 256
"""Up to this side a face is made as large as it is in the photo without being asked for."""
_WEIGHTS = 0.35  # of the target's identity, at the ends of `SwapOptions.weight`
_COVERED = 0.15  # share of the middle of a face that is hidden


class Who(StrEnum):
    """What a network is told about the source."""

    PROJECTED = "projected"
    """The embedding, projected by a matrix in the graph."""
    UNIT = "unit"
    """The embedding at length 1."""
    CONVERTED = "converted"
    """The embedding in the space of another identity model."""
    CONVERTED_UNIT = "converted-unit"
    """The same at length 1."""
    PHOTO = "photo"
    """A crop of the source photo."""


@dataclass(frozen=True, slots=True, eq=False)
class SwapperFamily:
    """What a family wants.

    Attributes:
        size: side of what goes in and comes out, in pixels.
        template: where the five points belong.
        mean, deviation: by which values of 0–1 are normalised, RGB.
        signed: whether results are from -1 to 1 instead of from 0 to 1.
        who: what it is told about the source.
        photo: template and side of the source's crop, where it gets one.
    """

    size: int
    template: align.Template
    mean: tuple[float, float, float] = (0, 0, 0)
    deviation: tuple[float, float, float] = (1, 1, 1)
    signed: bool = False
    who: Who = Who.UNIT
    photo: tuple[align.Template, int] | None = None


_HALF = (0.5, 0.5, 0.5)
_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

SPECS = {
    "inswapper_128": SwapperFamily(128, align.ARCFACE_128, who=Who.PROJECTED),
    "simswap_256": SwapperFamily(256, align.ARCFACE_OLD, *_IMAGENET, who=Who.CONVERTED_UNIT),
    "simswap_512": SwapperFamily(512, align.ARCFACE_OLD, who=Who.CONVERTED_UNIT),
    "ghost_256": SwapperFamily(
        256, align.ARCFACE_OLD, _HALF, _HALF, signed=True, who=Who.CONVERTED
    ),
    "hyperswap_256": SwapperFamily(256, align.ARCFACE_128, _HALF, _HALF, signed=True),
    "uniface_256": SwapperFamily(
        256, align.FFHQ, _HALF, _HALF, signed=True, who=Who.PHOTO, photo=(align.FFHQ, 256)
    ),
    "blendswap_256": SwapperFamily(256, align.FFHQ, who=Who.PHOTO, photo=(align.ARCFACE_112, 112)),
    "hififace_256": SwapperFamily(
        256, align.MTCNN, _HALF, _HALF, signed=True, who=Who.CONVERTED_UNIT
    ),
}


class Generator:
    """One swap model.

    Args:
        engine: runs float32 [N, 3, size, size] RGB and [N, 512], or an image of the source, to
            [N, 3, size, size] RGB.
        spec: what it wants.
        path: tells where its .onnx file is, once it has been fetched.
        latent: "insightface": a projected identity gets length 1 again, as the model's makers do
            it; "facefusion": it does not, and `SwapOptions.weight` mixes it with what was not
            projected.
    """

    def __init__(
        self,
        engine: Engine,
        spec: SwapperFamily,
        path: Callable[[], Path],
        latent: str = "insightface",
    ) -> None:
        self._engine, self.spec, self._path = engine, spec, path
        self._as_published = latent == "insightface"

    @property
    def takes_identity(self) -> bool:
        """Whether it is told an identity, not shown a photo."""
        return self.spec.who is not Who.PHOTO

    @cached_property
    def _emap(self) -> NDArray[np.float32]:
        return emap.read(self._path())

    def told(
        self, source: Source, targets: Sequence[Face], weight: float, convert: Engine | None
    ) -> list[Rows]:
        """What it is told about the source, for each of the targets.

        Args:
            source: the person to put in.
            targets: the faces to replace.
            weight: see `SwapOptions.weight`.
            convert: the converter of embeddings, for families that need one.
        """
        spec = self.spec
        if spec.photo:
            template, side = spec.photo
            matrix = align.matrix(source.face.five, template, side)
            chip = geometry.crop(source.picture.pixels, matrix, (side, side), cv2.BORDER_REPLICATE)
            return [align.planes(chip[None], 1 / 255, 0.0)[0]] * len(targets)
        own = self._latent(source.embedding, convert)
        share = _WEIGHTS * (1 - 2 * weight)
        if not share:
            return [own] * len(targets)
        others = (embedding_of(target) for target in targets)
        return [
            np.asarray(own * (1 - share) + self._other(other, convert) * share, np.float32)
            for other in others
        ]

    def _latent(self, embedding: Rows, convert: Engine | None) -> Rows:
        who = self.spec.who
        if who is Who.UNIT:
            return _unit(embedding)
        if who is Who.PROJECTED:
            projected = _unit(embedding) @ self._emap
            return _unit(projected) if self._as_published else projected
        if convert is None:
            raise ValueError("this family needs a converter of embeddings")
        converted = convert.run(embedding[None])[0][0]
        return _unit(converted) if who is Who.CONVERTED_UNIT else converted

    def _other(self, embedding: Rows, convert: Engine | None) -> Rows:
        """The target's identity, to be mixed in."""
        return self._latent(embedding, convert) if self._as_published else _unit(embedding)

    def make(self, crops: Sequence[Crop], told: Sequence[Rows]) -> list[Crop]:
        """Make faces anew, as one batch.

        Args:
            crops: uint8 [k · size, k · size, 3] RGB each; k may differ.
            told: see `told`, for each.

        Returns:
            uint8 of the same shapes.
        """
        spec = self.spec
        tiles = [_tiles(crop, spec.size) for crop in crops]
        counts = [len(each) for each in tiles]
        images = np.concatenate(tiles)
        deviation, mean = (
            np.array(each, np.float32)[:, None, None] for each in (spec.deviation, spec.mean)
        )
        images *= 1 / (255 * deviation)
        if mean.any():
            images -= mean / deviation
        sources = np.repeat(np.stack(told), counts, 0)
        outputs = self._engine.run(images, sources)
        results = next(each for each in outputs if each.shape[1:] == images.shape[1:])
        scale, shift = (127.5, 127.5) if spec.signed else (255.0, 0.0)
        parts = np.split(results, np.cumsum(counts)[:-1])
        return [_whole(part, scale, shift) for part in parts]


class NeuralSwapper:
    """Swaps faces by a model; see `Swapper`.

    Args:
        generator: the model.
        convert: the converter of embeddings that it may need.
        occlusion: tells what covers a face.
        regions: tells the parts of a face.
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

    def reach(self, five: NDArray[np.float32]) -> NDArray[np.float32]:
        """See `Swapper.reach`: the crop."""
        return align.corners(five, self._generator.spec.template)

    def swap_all(
        self,
        canvas: NDArray[np.uint8],
        targets: Sequence[Face],
        source: Source,
        options: SwapOptions,
        *,
        gray: bool,
    ) -> list[tuple[QualityWarning, ...]]:
        """See `Swapper.swap_all`; as one batch, unless crops overlap."""
        found: dict[int, tuple[QualityWarning, ...]] = {}
        for places in align.rounds(targets, self._generator.spec.template):
            some = [targets[n] for n in places]
            warnings = self._swap(canvas, some, source, options, gray=gray)
            found.update(zip(places, warnings, strict=True))
        return [found[n] for n in range(len(targets))]

    def _swap(
        self,
        canvas: NDArray[np.uint8],
        targets: Sequence[Face],
        source: Source,
        options: SwapOptions,
        *,
        gray: bool,
    ) -> list[tuple[QualityWarning, ...]]:
        """Replace faces whose crops do not overlap."""
        spec = self._generator.spec
        sizes = [spec.size * _factor(target, spec, options) for target in targets]
        places = [
            align.matrix(target.five, spec.template, size)
            for target, size in zip(targets, sizes, strict=True)
        ]
        crops = [
            geometry.crop(canvas, place, (size, size), cv2.BORDER_REPLICATE)
            for place, size in zip(places, sizes, strict=True)
        ]
        told = self._generator.told(source, targets, options.weight, self._convert)
        seen = self._seen(crops, options)
        made = self._generator.make(crops, told)
        soft = [masks.box(size) for size in sizes]
        if seen:
            soft = [np.minimum(*pair) for pair in zip(soft, seen, strict=True)]
        if self._regions and options.uses(Mask.REGION):
            parts = self._regions.masks(made)
            soft = [np.minimum(*pair) for pair in zip(soft, parts, strict=True)]
        for n, target in enumerate(targets):
            if target.outline is not None and options.uses(Mask.AREA):
                outline = geometry.apply(places[n], target.outline)
                soft[n] = np.minimum(soft[n], masks.area(outline, sizes[n]))
            paste(canvas, made[n], soft[n], places[n], gray=gray)
        covered = [_covered(mask) for mask in seen] or [False] * len(targets)
        return [
            _cautions(target, source, covered=hidden)
            for target, hidden in zip(targets, covered, strict=True)
        ]

    def _seen(self, crops: Sequence[Crop], options: SwapOptions) -> list[Rows]:
        """What of each face nothing covers; empty where that does not count."""
        if self._occlusion and options.uses(Mask.OCCLUSION, else_=True):
            return self._occlusion.masks(crops)
        return []


def _factor(face: Face, spec: SwapperFamily, options: SwapOptions) -> int:
    """How many times the network's size a face is made."""
    if options.boost is not None:
        return max(1, options.boost // spec.size)
    edge = align.corners(face.five, spec.template)
    side = float(np.linalg.norm(edge[1] - edge[0]))
    return max(1, min(round(side / spec.size), _OWN_SIDE // spec.size))


def _tiles(crop: Crop, size: int) -> Rows:
    """The k² small images of every k-th row and column that together are a large one.

    Returns:
        float32 [k², 3, size, size], levels.
    """
    k = len(crop) // size
    split = crop.reshape(size, k, size, k, 3).transpose(1, 3, 4, 0, 2)
    return np.ascontiguousarray(split, np.float32).reshape(k * k, 3, size, size)


def _whole(tiles: Rows, scale: float, shift: float) -> Crop:
    """The large image of such tiles, uint8 [k · size, k · size, 3]."""
    count, _, size, _ = tiles.shape
    k = round(count**0.5)
    levels = np.clip(tiles * np.float32(scale) + np.float32(shift + 0.5), 0, 255).astype(np.uint8)
    split = levels.reshape(k, k, 3, size, size).transpose(3, 0, 4, 1, 2)
    return np.ascontiguousarray(split).reshape(k * size, k * size, 3)


def _unit(vector: Rows) -> Rows:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), np.float32)


def _covered(seen: Rows) -> bool:
    """Whether something covers much of the middle of a face."""
    quarter = len(seen) // 4
    return bool(1 - seen[quarter:-quarter, quarter:-quarter].mean() > _COVERED)


def _cautions(target: Face, source: Source, *, covered: bool) -> tuple[QualityWarning, ...]:
    seen = {
        QualityWarning.EXTREME_POSE: pose.extreme(target.pose, source.face.pose),
        QualityWarning.OCCLUDED: covered,
    }
    return tuple(warning for warning, holds in seen.items() if holds)
