"""Networks that make a face anew with another identity: what each family takes, and running one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import align, geometry
from function.faces.face import embedding_of
from function.faces.families import OWN_SIDE
from function.faces.swappers import emap
from function.faces.swappers.cutouts import Cutouts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.swappers.protocol import SourceFace
    from function.runtime.engine import Engine

    Crop = NDArray[np.uint8]
    Rows = NDArray[np.float32]

_WEIGHTS = 0.35  # of the target's identity, at the ends of `SwapOptions.weight`


class SourceInput(StrEnum):
    """In which form a network gets the source's identity."""

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
    """What the networks of a family take and give.

    Attributes:
        size: side of what goes in and comes out, in pixels.
        template: where the five points belong.
        mean, deviation: by which values of 0–1 are normalised, RGB.
        signed: whether results are from -1 to 1 instead of from 0 to 1.
        source: the form in which it gets the source's identity.
        photo: template and side of the source's crop, where it gets one.
    """

    size: int
    template: align.Template
    mean: tuple[float, float, float] = (0, 0, 0)
    deviation: tuple[float, float, float] = (1, 1, 1)
    signed: bool = False
    source: SourceInput = SourceInput.UNIT
    photo: tuple[align.Template, int] | None = None

    @property
    def made(self) -> int:
        """The side up to which a face is made as large as it is without being asked for."""
        return max(self.size, OWN_SIDE)


_HALF = (0.5, 0.5, 0.5)
_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

SPECS = {
    "inswapper_128": SwapperFamily(128, align.ARCFACE_128, source=SourceInput.PROJECTED),
    "simswap_256": SwapperFamily(
        256, align.ARCFACE_OLD, *_IMAGENET, source=SourceInput.CONVERTED_UNIT
    ),
    "simswap_512": SwapperFamily(512, align.ARCFACE_OLD, source=SourceInput.CONVERTED_UNIT),
    "ghost_256": SwapperFamily(
        256, align.ARCFACE_OLD, _HALF, _HALF, signed=True, source=SourceInput.CONVERTED
    ),
    "hyperswap_256": SwapperFamily(256, align.ARCFACE_128, _HALF, _HALF, signed=True),
    "uniface_256": SwapperFamily(
        256,
        align.FFHQ,
        _HALF,
        _HALF,
        signed=True,
        source=SourceInput.PHOTO,
        photo=(align.FFHQ, 256),
    ),
    "blendswap_256": SwapperFamily(
        256, align.FFHQ, source=SourceInput.PHOTO, photo=(align.ARCFACE_112, 112)
    ),
    "hififace_256": SwapperFamily(
        256, align.MTCNN, _HALF, _HALF, signed=True, source=SourceInput.CONVERTED_UNIT
    ),
}


class Generator:
    """One swap model.

    Args:
        engine: runs float32 [N, 3, size, size] RGB and [N, 512], or an image of the source, to
            [N, 3, size, size] RGB.
        spec: of its family.
        path: returns the path of its .onnx file, once that has been fetched.
        latent: "insightface": a projected identity gets length 1 again, as the model's makers do
            it; "facefusion": it does not, and `SwapOptions.weight` mixes it with what was not
            projected.
        cutout: the side of the cutouts that the engine takes instead; 0 if it takes no cutouts.

    Attributes:
        cutouts: how an engine that takes them is run.
    """

    def __init__(
        self,
        engine: Engine,
        spec: SwapperFamily,
        path: Callable[[], Path],
        latent: str = "insightface",
        cutout: int = 0,
    ) -> None:
        self._engine, self.spec, self._path = engine, spec, path
        self.cutouts = Cutouts(engine, spec.size, spec.made, cutout) if cutout else None
        self._as_published = latent == "insightface"

    @property
    def takes_identity(self) -> bool:
        """Whether it gets an embedding, not a photo."""
        return self.spec.source is not SourceInput.PHOTO

    @cached_property
    def _emap(self) -> NDArray[np.float32]:
        return emap.read(self._path())

    def source_inputs(
        self,
        sources: Sequence[SourceFace],
        targets: Sequence[Face],
        weight: float,
        convert: Engine | None,
    ) -> list[Rows]:
        """What the network gets about the sources.

        Args:
            sources: the person to put in, for each target.
            targets: the faces to replace.
            weight: see `SwapOptions.weight`.
            convert: the converter of embeddings, for families that need one.
        """
        each = {id(source): source for source in sources}  # most often one person for all
        own = {key: self._input(source, convert) for key, source in each.items()}
        given = [own[id(source)] for source in sources]
        share = _WEIGHTS * (1 - 2 * weight)
        if self.spec.photo or not share:
            return given
        return [
            np.asarray(
                one * (1 - share) + self._other(embedding_of(target), convert) * share, np.float32
            )
            for one, target in zip(given, targets, strict=True)
        ]

    def _input(self, source: SourceFace, convert: Engine | None) -> Rows:
        """What the network gets about one source, before the target counts."""
        if self.spec.photo is None:
            return self._latent(source.embedding, convert)
        template, side = self.spec.photo
        matrix = align.matrix(source.face.five, template, side)
        chip = geometry.crop(source.picture.pixels, matrix, (side, side), cv2.BORDER_REPLICATE)
        (planes,) = align.planes(chip[None], 1 / 255, 0.0)
        return np.asarray(planes, np.float32)

    def _latent(self, embedding: Rows, convert: Engine | None) -> Rows:
        form = self.spec.source
        if form is SourceInput.UNIT:
            return _unit(embedding)
        if form is SourceInput.PROJECTED:
            projected = _unit(embedding) @ self._emap
            return _unit(projected) if self._as_published else projected
        if convert is None:
            raise ValueError("this family needs a converter of embeddings")
        converted = convert.run(embedding[None])[0][0]
        return _unit(converted) if form is SourceInput.CONVERTED_UNIT else converted

    def _other(self, embedding: Rows, convert: Engine | None) -> Rows:
        """The target's identity, to be mixed in; see `latent`."""
        return self._latent(embedding, convert) if self._as_published else _unit(embedding)

    def make(self, crops: Sequence[Crop], inputs: Sequence[Rows]) -> list[Crop]:
        """Make faces anew, as one batch.

        Args:
            crops: uint8 [k · size, k · size, 3] RGB each; k may differ.
            inputs: see `source_inputs`, for each.

        Returns:
            uint8 of the same shapes.
        """
        if self.cutouts:
            return self.cutouts.make(crops, inputs)
        spec = self.spec
        tiles = [split(crop, spec.size) for crop in crops]
        counts = [len(each) for each in tiles]
        images = np.concatenate(tiles)
        deviation, mean = (
            np.array(each, np.float32)[:, None, None] for each in (spec.deviation, spec.mean)
        )
        images *= 1 / (255 * deviation)
        if mean.any():
            images -= mean / deviation
        sources = np.repeat(np.stack(inputs), counts, 0)
        outputs = self._engine.run(images, sources)
        results = next(each for each in outputs if each.shape[1:] == images.shape[1:])
        scale, shift = (127.5, 127.5) if spec.signed else (255.0, 0.0)
        parts = np.split(results, np.cumsum(counts)[:-1])
        return [join(part, scale, shift) for part in parts]


def split(crop: Crop, size: int) -> Rows:
    """The k² small images of every k-th row and column that together are a large one.

    Returns:
        float32 [k², 3, size, size], levels.
    """
    k = len(crop) // size
    split = crop.reshape(size, k, size, k, 3).transpose(1, 3, 4, 0, 2)
    return np.ascontiguousarray(split, np.float32).reshape(k * k, 3, size, size)


def join(tiles: Rows, scale: float, shift: float) -> Crop:
    """The large image of such tiles, uint8 [k · size, k · size, 3]."""
    count, _, size, _ = tiles.shape
    k = round(count**0.5)
    levels = np.clip(tiles * np.float32(scale) + np.float32(shift + 0.5), 0, 255).astype(np.uint8)
    split = levels.reshape(k, k, 3, size, size).transpose(3, 0, 4, 1, 2)
    return np.ascontiguousarray(split).reshape(k * size, k * size, 3)


def _unit(vector: Rows) -> Rows:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), np.float32)
