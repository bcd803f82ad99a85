"""The models of a replica in their roles, as the pipeline runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.faces.families import family_of
from function.faces.options import DEFAULT, Mask
from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from function.faces.age import Age
    from function.faces.content import Content
    from function.faces.enhance import Enhancer
    from function.faces.identity import Identity
    from function.faces.landmarks import Landmarks
    from function.faces.options import SwapOptions
    from function.faces.search import Fit, Search
    from function.faces.swappers.crop_masks import Occlusion, Regions
    from function.faces.swappers.generator import Generator
    from function.faces.swappers.protocol import Swapper
    from function.runtime.engine import Engine
    from warmup.models.manifest import Model


@dataclass(frozen=True, slots=True)
class Models:
    """What the pipeline runs.

    Attributes:
        detect, landmarks, identity, swap, convert, enhance, occlusion, region, gate, age: the
            stages; None for a role without a model.
        engines: every engine by role, to read what really executes it.
    """

    detect: Search
    identity: Identity
    engines: dict[str, Engine]
    landmarks: Landmarks | None = None
    swap: Generator | None = None
    convert: Engine | None = None
    enhance: Enhancer | None = None
    occlusion: Occlusion | None = None
    region: Regions | None = None
    gate: Content | None = None
    age: Age | None = None

    @property
    def fit(self) -> Fit:
        """Finds the points of a face: the landmark model, or without one the detector's own."""
        from function.faces.search import unconfirmed

        return self.landmarks.fit if self.landmarks else unconfirmed

    def swapper(self) -> Swapper:
        """What swaps faces: the model for it, else the mesh."""
        if self.swap is None:
            from function.faces.swappers.mesh import MeshSwapper

            return MeshSwapper()
        from function.faces.swappers.neural import NeuralSwapper

        return NeuralSwapper(self.swap, self.convert, self.occlusion, self.region)


def build(manifest: Sequence[Model], engines: Mapping[str, Engine]) -> Models:
    """The stages over engines, which need not be loaded yet.

    Args:
        manifest: checked.
        engines: by role.
    """
    stages = {model.role: family_of(model).stage(engines[model.role], model) for model in manifest}
    return Models(**stages, engines=dict(engines))  # type: ignore[arg-type]


def fitting(options: SwapOptions, models: Models) -> SwapOptions:
    """The options, if these models can do what they ask for.

    Raises:
        Problem: `bad_value`, when an option needs a model that is not there.
    """
    masks = set(options.masks or ())
    lacking = {
        "boost": options.boost is not None and not models.swap,
        "weight": options.weight != DEFAULT.weight
        and not (models.swap and models.swap.takes_identity),
        "enhance": options.enhance not in (0, DEFAULT.enhance) and not models.enhance,
        "masks": bool(masks) and not models.swap,
    }
    for name, lacks in lacking.items():
        if lacks:
            model = "enhancer" if name == "enhance" else "swapper that can do that"
            raise Problem("bad_value", f"`{name}`: this replica has no {model}.", field=name)
    have = {
        Mask.OCCLUSION: models.occlusion,
        Mask.AREA: models.landmarks,
        Mask.REGION: models.region,
    }
    for mask in sorted(masks - {Mask.BOX}):
        if not have[mask]:
            raise Problem(
                "bad_value", f"`masks`: this replica has no model for {mask}.", field="masks"
            )
    return options
