"""The models of a manifest, loaded and put into their roles.

The table of families is read before anything heavy is imported; each imports its code when it is
made.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from function.faces.options import DEFAULT, Mask
from function.problems import Problem
from function.runtime.backends.fallback import SkippedBackend, allowed, open_first
from function.runtime.engine import Ports
from function.runtime.gpu.options import GpuOptions
from warmup.failures import ManifestError
from warmup.plans import plan_key as keys
from warmup.plans.tensorrt import RTX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from function.faces.detect import Detector
    from function.faces.enhance import Enhancer
    from function.faces.identity import Identity
    from function.faces.landmarks import Landmarks
    from function.faces.options import SwapOptions
    from function.faces.search import Search
    from function.faces.swappers.masks import Occlusion, Regions
    from function.faces.swappers.neural import Generator
    from function.faces.swappers.protocol import Swapper
    from function.runtime.engine import Engine
    from warmup.models.manifest import Model
    from warmup.plans.nvml import Gpu as GpuFacts
    from warmup.plans.plan_key import PlanKey, Recipe
    from warmup.plans.tensorrt import Library


@dataclass(frozen=True, slots=True)
class Family:
    """The code for one kind of model.

    Attributes:
        stage: makes the stage from an engine and the model's entry.
        items: the shape of one item, float32, for each input that gets one.
        inputs: the names of the inputs in that order, where there are several.
        buckets: the batch sizes to warm, unless the manifest names others.
        constants: see `Ports`.
        rank: see `Ports`.
        options: what the `options` of an entry may be: the words of one, or the range of a number.
    """

    stage: Callable[[Engine, Model], object]
    items: tuple[tuple[int, ...], ...]
    inputs: tuple[str, ...] = ()
    buckets: tuple[int, ...] = (1,)
    constants: Mapping[str, float] = field(default_factory=dict)
    rank: int = 0
    options: Mapping[str, tuple[str, ...] | tuple[float, float]] = field(default_factory=dict)

    def ports(self, model: Model) -> Ports:
        """How engines of a model are run; its options may give other constants."""
        constants = {
            name: float(model.options.get(name, value)) for name, value in self.constants.items()
        }
        return Ports(self.inputs, constants, self.rank)


def _centerface(engine: Engine, _: Model) -> Search:
    from function.faces.detect import CenterFace

    return _search(CenterFace(engine))


def _anchored(engine: Engine, _: Model) -> Search:
    from function.faces.anchors import Anchored

    return _search(Anchored(engine))


def _yunet(engine: Engine, _: Model) -> Search:
    from function.faces.anchors import YuNet

    return _search(YuNet(engine))


def _search(detector: Detector) -> Search:
    from function.faces.search import Search

    return Search(detector)


def _face_mesh(engine: Engine, _: Model) -> Landmarks:
    from function.faces.landmarks import FaceMesh

    return FaceMesh(engine)


def _flat_106(engine: Engine, _: Model) -> Landmarks:
    from function.faces.dense import Flat106

    return Flat106(engine)


def _fan_68(engine: Engine, _: Model) -> Landmarks:
    from function.faces.dense import Fan68

    return Fan68(engine)


def _dlib(engine: Engine, _: Model) -> Identity:
    from function.faces.identity import DlibIdentity

    return DlibIdentity(engine)


def _arcface(engine: Engine, _: Model) -> Identity:
    from function.faces.identity import ArcFace

    return ArcFace(engine)


def _generator(engine: Engine, model: Model) -> Generator:
    from function.faces.swappers.neural import SPECS, Generator

    latent = str(model.options.get("latent", "insightface"))
    return Generator(engine, SPECS[model.family], lambda: model.path, latent)


def _enhancer(engine: Engine, model: Model) -> Enhancer:
    from function.faces.enhance import SPECS, Enhancer

    return Enhancer(engine, SPECS[model.family])


def _occlusion(engine: Engine, _: Model) -> Occlusion:
    from function.faces.swappers.masks import Occlusion

    return Occlusion(engine)


def _regions(engine: Engine, _: Model) -> Regions:
    from function.faces.swappers.masks import Regions

    return Regions(engine)


def _converter(engine: Engine, _: Model) -> Engine:
    return engine


_FEW, _SOME = (1, 2, 4), (1, 4)
_EMBEDDING = (512,)


def _swap(side: int, *source: int, order: tuple[str, ...] = ("target", "source")) -> Family:
    """A swapper of square images; `source` is the shape of its source, an embedding if none."""
    items = ((3, side, side), source or _EMBEDDING)
    latents = {"latent": ("insightface", "facefusion")} if side == 128 else {}
    return Family(_generator, items, order, _SOME, options=latents)


def _enhance(side: int, weight: float | None = None) -> Family:
    """An enhancer of square images, perhaps with a weight."""
    weights = {} if weight is None else {"weight": weight}
    ranges = dict.fromkeys(weights, (0.0, 1.0))
    return Family(_enhancer, ((3, side, side),), constants=weights, options=ranges)


FAMILIES: dict[tuple[str, str], Family] = {
    ("detect", "centerface"): Family(_centerface, items=((3, 640, 640),)),
    ("detect", "scrfd"): Family(_anchored, items=((3, 640, 640),), rank=3),
    ("detect", "retinaface"): Family(_anchored, items=((3, 640, 640),), rank=3),
    ("detect", "yunet"): Family(_yunet, items=((3, 640, 640),), rank=3),
    ("landmarks", "face_mesh_468"): Family(_face_mesh, items=((192, 192, 3),)),
    ("landmarks", "insightface_2d106"): Family(_flat_106, items=((3, 192, 192),)),
    ("landmarks", "fan_68"): Family(_fan_68, items=((3, 256, 256),)),
    ("identity", "face_identity_128"): Family(_dlib, items=((150, 150, 3),)),
    ("identity", "arcface"): Family(_arcface, items=((3, 112, 112),), buckets=_FEW),
    ("swap", "inswapper_128"): _swap(128),
    ("swap", "simswap_256"): _swap(256),
    ("swap", "simswap_512"): _swap(512),
    ("swap", "ghost_256"): _swap(256),
    ("swap", "hyperswap_256"): _swap(256),
    ("swap", "uniface_256"): _swap(256, 3, 256, 256),
    ("swap", "blendswap_256"): _swap(256, 3, 112, 112),
    ("swap", "hififace_256"): _swap(256),
    ("convert", "crossface"): Family(_converter, items=(_EMBEDDING,)),
    ("enhance", "gfpgan_512"): _enhance(512),
    ("enhance", "codeformer_512"): _enhance(512, 0.5),
    ("enhance", "restoreformer_512"): _enhance(512),
    ("enhance", "gpen_256"): _enhance(256),
    ("enhance", "gpen_512"): _enhance(512),
    ("enhance", "gpen_1024"): _enhance(1024),
    ("enhance", "gpen_2048"): _enhance(2048),
    ("occlusion", "xseg"): Family(_occlusion, items=((256, 256, 3),)),
    ("region", "bisenet"): Family(_regions, items=((3, 512, 512),)),
}
"""By role and family. Masks have a role each, as a replica may have both."""

NEEDED = ("detect", "identity")
_CONVERTED = ("simswap_256", "simswap_512", "ghost_256", "hififace_256")
_FROM_PHOTOS = ("uniface_256", "blendswap_256")
_MESH = ("landmarks", "face_mesh_468")


_LEAST_VIEW = (3, 32, 32)
"""The smallest item of a detector; every multiple of 32 up to the family's may come."""


@dataclass(frozen=True, slots=True)
class Models:
    """What the pipeline runs.

    Attributes:
        detect, landmarks, identity, swap, convert, enhance, occlusion, region: the stages; None for
            a role without a model.
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

    def swapper(self) -> Swapper:
        """What swaps faces: the model for it, else the mesh."""
        if self.swap is None:
            from function.faces.swappers.mesh import MeshSwapper

            return MeshSwapper()
        from function.faces.swappers.neural import NeuralSwapper

        return NeuralSwapper(self.swap, self.convert, self.occlusion, self.region)


def fitting(options: SwapOptions, models: Models) -> SwapOptions:
    """The look, if these models can give it.

    Raises:
        Problem: `bad_value`, when it asks for what needs a model that is not there.
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
    sound = type(value) in {int, float} and low <= value <= high
    return None if sound else f"option {name!r} is a number from {low:g} to {high:g}"


def _needs(what: str, role: str, family: str) -> str:
    return f"{what} needs a model for {role} of the family {family}"


def buckets(model: Model) -> tuple[int, ...]:
    """The batch sizes of a model, rising: its own, else those of its family."""
    return model.buckets or FAMILIES[model.role, model.family].buckets


def shapes(model: Model) -> list[tuple[tuple[int, ...], ...]]:
    """The shapes of a model's inputs, for each of its batch sizes."""
    items = FAMILIES[model.role, model.family].items
    return [tuple((size, *item) for item in items) for size in buckets(model)]


def ports(model: Model) -> Ports:
    """How engines of a model are run."""
    return FAMILIES[model.role, model.family].ports(model)


def plan_key(model: Model, recipe: Recipe, library: Library, gpu: GpuFacts | None) -> PlanKey:
    """The key of a model's plan.

    Args:
        model: any.
        recipe: how plans are made.
        library: runs it.
        gpu: where; None for none in particular.
    """
    family = FAMILIES[model.role, model.family]
    names = family.inputs or ("",)
    return keys.key_for(
        model.file.sha256,
        keys.profiles_for(
            [
                (name, _LEAST_VIEW if model.role == "detect" else item, item)
                for name, item in zip(names, family.items, strict=True)
            ],
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


def build(manifest: Sequence[Model], engines: Mapping[str, Engine]) -> Models:
    """The stages over engines, which need not be loaded yet.

    Args:
        manifest: checked.
        engines: by role.
    """
    stages = {
        model.role: FAMILIES[model.role, model.family].stage(engines[model.role], model)
        for model in manifest
    }
    return Models(**stages, engines=dict(engines))  # type: ignore[arg-type]


def open_engine(
    model: Model,
    *,
    threads: int = 1,
    backends: Sequence[str] = ("cpu",),
    allow_degraded: bool = False,
    store: Path | None = None,
    gpu: GpuOptions | None = None,
    passed: Callable[[SkippedBackend], None] = lambda _: None,
) -> Engine:
    """Load one model on the best of its backends.

    On a GPU it counts as loaded when it has run, and passed its golden check if it has one: some
    libraries are missed only then.

    Args:
        model: its file, which is known to be right; see `warmup.models.prefetch`.
        threads: threads of one inference on the CPU.
        backends: what it may run on, the most wanted first.
        allow_degraded: whether it may go from a GPU to the CPU; see `fallback.allowed`.
        store: where optimised graphs for the CPU, and plans, are kept.
        gpu: how GPUs are used.
        passed: is told of each backend that does not run it.

    Raises:
        NotOnDeviceError: none of them runs it.
    """
    gpu = gpu or GpuOptions()
    how = ports(model)

    def on_cpu() -> Engine:
        from function.runtime.backends.onnx import OnnxEngine
        from function.runtime.backends.optimised import Optimised

        if store is None:
            return OnnxEngine(model.path, threads, ports=how)
        kept = Optimised.of(store, model.file.sha256)
        return kept.load(threads, how) or kept.make(model.path, threads, how)

    def on_cuda(device: int) -> Engine:
        from function.runtime.backends.onnx import OnnxEngine

        return OnnxEngine(model.path, threads, cuda=gpu.cuda(device), ports=how)

    def on_tensorrt(device: int) -> Engine:
        from function.runtime.backends.tensorrt import open_kept

        return open_kept(gpu, partial(plan_keys, model, gpu.recipe), device, how)

    def open_on(backend: str) -> Engine:
        if backend == "cpu":
            return on_cpu()
        engine = gpu.spread({"tensorrt": on_tensorrt, "cuda": on_cuda}[backend])
        _try_out(model, engine)
        return engine

    may = allowed(backends, allow_degraded=allow_degraded, require_gpu=gpu.required)
    left_out = "cpu" in backends and "cpu" not in may
    return open_first(model.role, may, open_on, left_out=left_out, passed=passed)


def _try_out(model: Model, engine: Engine) -> None:
    """Run a model once, on the smallest batch, and on its golden input if it has one."""
    from function.runtime import sanity

    size = engine.items or buckets(model)[0]
    items = FAMILIES[model.role, model.family].items
    sanity.attempt(model.role, engine, [(size, *item) for item in items])
    if model.golden:
        sanity.known(model.file.name, engine, model.golden)


def load(manifest: Sequence[Model], threads: int = 1, store: Path | None = None) -> Models:
    """Load the models of a manifest for the CPU, in parallel; see `open_engine`."""
    check(manifest)
    with ThreadPoolExecutor(len(manifest), "load") as pool:
        engines = pool.map(partial(open_engine, threads=threads, store=store), manifest)
        return build(manifest, dict(zip((model.role for model in manifest), engines, strict=True)))
