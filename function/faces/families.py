"""The families of models: which code runs each, on which shapes, and what has to fit together.

The table is read before anything heavy is imported: the code of a family is imported when a stage
of it is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from function.runtime.engine import Ports
from warmup.failures import ManifestError
from warmup.plans import plan_key as keys
from warmup.plans.tensorrt import RTX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from function.faces.enhance import Enhancer
    from function.faces.swappers.generator import Generator
    from function.runtime.engine import Engine
    from warmup.models.manifest import Model
    from warmup.plans.nvml import Gpu as GpuFacts
    from warmup.plans.plan_key import PlanKey, Recipe
    from warmup.plans.tensorrt import Library

    MakeStage = Callable[[Engine, Model], object]
    """Makes a stage of the pipeline from an engine and the model's entry in the manifest."""


OWN_SIDE = 256
"""Up to this side swappers make a face as large as it is without being asked for."""
CUTOUT = ("cutout", "cutout.there", "cutout.back", "cutout.mask")
"""The first inputs of a graph that takes cutouts, instead of a crop."""


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of model, and the code that runs it.

    Attributes:
        stage: makes the stage of the pipeline.
        items: the shape of one item, float32, for each input that gets one.
        inputs: the names of the inputs in that order, where there are several.
        buckets: the batch sizes to warm, unless the manifest names others.
        constants: of `Ports`, which options of an entry may change.
        rank: of `Ports`.
        options: what the `options` of an entry may be: the words of one, or the range of a number.
    """

    stage: MakeStage
    items: tuple[tuple[int, ...], ...]
    inputs: tuple[str, ...] = ()
    buckets: tuple[int, ...] = (1,)
    constants: Mapping[str, float] = field(default_factory=dict)
    rank: int = 0
    options: Mapping[str, tuple[str, ...] | tuple[float, float]] = field(default_factory=dict)

    def cut(self, side: int) -> Family:
        """The same for graphs that take cutouts; see `function.faces.swappers.cutouts`.

        Args:
            side: of the cutouts.
        """
        made, _ = self.options["cutout"]
        items = ((side, side, 3), (2, 3), (2, 3), (int(made), int(made)), *self.items[1:])
        return replace(self, items=items, inputs=(*CUTOUT, *self.inputs[1:]))

    def ports(self, model: Model) -> Ports:
        """How engines of a model are run; its options may give other constants."""
        constants = {
            name: float(model.options.get(name, value)) for name, value in self.constants.items()
        }
        return Ports(self.inputs, constants, self.rank)


def _stage(name: str) -> MakeStage:
    """A function that makes a stage of the class `name`, given as "module:class"."""

    def make(engine: Engine, _: Model) -> object:
        module, attribute = name.split(":")
        return getattr(import_module(f"function.faces.{module}"), attribute)(engine)

    return make


def _search(name: str) -> MakeStage:
    """The same for a detector, with which faces are searched for."""
    detector = _stage(name)

    def make(engine: Engine, model: Model) -> object:
        from function.faces.search import Search

        return Search(detector(engine, model))  # type: ignore[arg-type]

    return make


def _generator(engine: Engine, model: Model) -> Generator:
    from function.faces.swappers.generator import SPECS, Generator

    latent = str(model.options.get("latent", "insightface"))
    return Generator(engine, SPECS[model.family], lambda: model.path, latent, cutout_of(model))


def _enhancer(engine: Engine, model: Model) -> Enhancer:
    from function.faces.enhance import SPECS, Enhancer

    return Enhancer(engine, SPECS[model.family], cutout_of(model))


def cutout_of(model: Model) -> int:
    """The side of the cutouts that a model takes; 0 if it takes crops."""
    return int(model.options.get("cutout", 0))


CPU = "cpu"
"""The option `device` of a model that is not to run on a GPU, wherever the others do."""

_FEW, _SOME = (1, 2, 4), (1, 4)
_EMBEDDING = (512,)


def _swap(side: int, *source: int, order: tuple[str, ...] = ("target", "source")) -> Family:
    """A swapper of square images; `source` is the shape of its source, an embedding if none."""
    items = ((3, side, side), source or _EMBEDDING)
    latents = {"latent": ("insightface", "facefusion")} if side == 128 else {}
    return Family(_generator, items, order, _SOME, options=_cutouts(max(side, OWN_SIDE)) | latents)


def _enhance(side: int, weight: float | None = None) -> Family:
    """An enhancer of square images, perhaps with a weight."""
    weights = {} if weight is None else {"weight": weight}
    ranges = dict.fromkeys(weights, (0.0, 1.0))
    return Family(_enhancer, ((3, side, side),), constants=weights, options=_cutouts(side) | ranges)


def _cutouts(made: int) -> dict[str, tuple[Any, ...]]:
    """The option of a family that may take cutouts: their side, from that of what is made."""
    return {"cutout": (made, 4096)}


FAMILIES: dict[tuple[str, str], Family] = {
    ("detect", "centerface"): Family(_search("detect:CenterFace"), items=((3, 640, 640),)),
    ("detect", "scrfd"): Family(_search("anchors:Anchored"), items=((3, 640, 640),), rank=3),
    ("detect", "retinaface"): Family(_search("anchors:Anchored"), items=((3, 640, 640),), rank=3),
    ("detect", "yunet"): Family(_search("anchors:YuNet"), items=((3, 640, 640),), rank=3),
    ("landmarks", "face_mesh_468"): Family(_stage("landmarks:FaceMesh"), items=((192, 192, 3),)),
    ("landmarks", "insightface_2d106"): Family(_stage("dense:Flat106"), items=((3, 192, 192),)),
    ("landmarks", "fan_68"): Family(_stage("dense:Fan68"), items=((3, 256, 256),)),
    ("identity", "face_identity_128"): Family(
        _stage("identity:DlibIdentity"), items=((150, 150, 3),)
    ),
    ("identity", "arcface"): Family(
        _stage("identity:ArcFace"), items=((3, 112, 112),), buckets=_FEW
    ),
    ("swap", "inswapper_128"): _swap(128),
    ("swap", "simswap_256"): _swap(256),
    ("swap", "simswap_512"): _swap(512),
    ("swap", "ghost_256"): _swap(256),
    ("swap", "hyperswap_256"): _swap(256),
    ("swap", "uniface_256"): _swap(256, 3, 256, 256),
    ("swap", "blendswap_256"): _swap(256, 3, 112, 112),
    ("swap", "hififace_256"): _swap(256),
    ("convert", "crossface"): Family(lambda engine, _: engine, items=(_EMBEDDING,)),
    ("enhance", "gfpgan_512"): _enhance(512),
    ("enhance", "codeformer_512"): _enhance(512, 0.5),
    ("enhance", "restoreformer_512"): _enhance(512),
    ("enhance", "gpen_256"): _enhance(256),
    ("enhance", "gpen_512"): _enhance(512),
    ("enhance", "gpen_1024"): _enhance(1024),
    ("enhance", "gpen_2048"): _enhance(2048),
    ("occlusion", "xseg"): Family(_stage("swappers.crop_masks:Occlusion"), items=((256, 256, 3),)),
    ("region", "bisenet"): Family(_stage("swappers.crop_masks:Regions"), items=((3, 512, 512),)),
    ("gate", "open_nsfw"): Family(
        _stage("content:OpenNsfw"), items=((224, 224, 3),), options={"device": ("any", CPU)}
    ),
    ("age", "insightface_genderage"): Family(_stage("age:GenderAge"), items=((3, 96, 96),)),
    ("age", "fairface_9"): Family(_stage("age:AgeGroups"), items=((3, 224, 224),)),
}
"""By role and family. Masks have a role each, as a replica may have both."""

NEEDED = ("detect", "identity")
_CONVERTED = ("simswap_256", "simswap_512", "ghost_256", "hififace_256")
_FROM_PHOTOS = ("uniface_256", "blendswap_256")
_MESH = ("landmarks", "face_mesh_468")


def family_of(model: Model) -> Family:
    """The family of a model whose manifest is checked."""
    found, side = FAMILIES[model.role, model.family], cutout_of(model)
    return found.cut(side) if side else found


def check(manifest: Sequence[Model]) -> None:
    """Check that a manifest has what the pipeline runs, and that its models fit together.

    Args:
        manifest: at most one model for each role.

    Raises:
        ManifestError: with everything that is wrong.
    """
    problems = []
    family = {model.role: model.family for model in manifest}
    for model in manifest:
        problems += _wrong_entry(model)
    missing = [role for role in NEEDED if role not in family]
    problems += [f"there is no model for {role}; every swap needs one" for role in missing]
    mesh = (_MESH[0], family.get(_MESH[0])) == _MESH
    swap = family.get("swap")
    if family.get("identity") == "face_identity_128" and not mesh:
        problems.append(_needs("the identity model face_identity_128", *_MESH))
    if swap is None and not mesh:
        problems.append(_needs("the embedded swap, as there is no model for swap,", *_MESH))
    if swap and swap not in _FROM_PHOTOS and family.get("identity", "arcface") != "arcface":
        problems.append(_needs(f"the swapper {swap}", "identity", "arcface"))
    if swap in _CONVERTED and "convert" not in family:
        problems.append(_needs(f"the swapper {swap}", "convert", "crossface"))
    if problems:
        raise ManifestError(*problems)


def _wrong_entry(model: Model) -> list[str]:
    """What is wrong with one entry by itself."""
    if model.role not in (roles := sorted({role for role, _ in FAMILIES})):
        return [f"unknown role {model.role!r}; known: {roles}"]
    if not (found := FAMILIES.get((model.role, model.family))):
        known = [family for role, family in FAMILIES if role == model.role]
        return [f"unknown family {model.family!r} for {model.role}; known: {known}"]
    return [
        f"{model.role}: {wrong}"
        for name, value in model.options.items()
        if (wrong := _wrong_option(name, value, found.options.get(name)))
    ]


def _wrong_option(name: str, value: Any, allowed: tuple[Any, ...] | None) -> str | None:
    """What is wrong with an option; None if nothing is."""
    if allowed is None:
        return f"the family has no option {name!r}"
    if isinstance(allowed[0], str):
        return None if value in allowed else f"option {name!r} is one of {', '.join(allowed)}"
    low, high = allowed
    sound = type(value) in {int, type(low)} and low <= value <= high
    kind = "whole number" if isinstance(low, int) else "number"
    return None if sound else f"option {name!r} is a {kind} from {low:g} to {high:g}"


def _needs(what: str, role: str, family: str) -> str:
    return f"{what} needs a model for {role} of the family {family}"


def on_cpu(model: Model) -> bool:
    """Whether a model is not to run on a GPU, wherever the others do."""
    return model.options.get("device") == CPU


def buckets(model: Model) -> tuple[int, ...]:
    """The batch sizes of a model, rising: its own, else those of its family."""
    return model.buckets or family_of(model).buckets


def shapes(model: Model) -> list[tuple[tuple[int, ...], ...]]:
    """The shapes of a model's inputs, for each of its batch sizes."""
    items = family_of(model).items
    return [tuple((size, *item) for item in items) for size in buckets(model)]


def ports(model: Model) -> Ports:
    """How engines of a model are run."""
    return family_of(model).ports(model)


def plan_key(model: Model, recipe: Recipe, library: Library, gpu: GpuFacts | None) -> PlanKey:
    """The key of a model's plan.

    Args:
        model: any.
        recipe: how plans are made.
        library: runs it.
        gpu: where; None for none in particular.
    """
    family = family_of(model)
    names = family.inputs or ("",)
    return keys.key_for(
        model.file.sha256,
        keys.profiles_for(
            [(name, item, item) for name, item in zip(names, family.items, strict=True)],
            buckets(model),
        ),
        recipe,
        runtime=library.runtime,
        version=library.version,
        gpu=gpu,
    )


def plan_keys(model: Model, recipe: Recipe, library: Library, gpu: GpuFacts) -> tuple[PlanKey, ...]:
    """The keys of the plans that serve a model on a GPU, the best first.

    TensorRT-RTX also runs what was made for the GPU's compute capability without the GPU.
    """
    exact = plan_key(model, recipe, library, gpu)
    if library.name != RTX:
        return (exact,)
    return (exact, replace(plan_key(model, recipe, library, None), sm=gpu.sm))
