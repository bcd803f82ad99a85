"""The models of a manifest, loaded and put into their roles.

The table of families is read before anything heavy is imported; each imports its code when it is
made.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from function.runtime.backends.ladder import Passed, allowed, climb
from function.runtime.engine import Ports
from function.runtime.gpu import Gpu
from warmup import plan
from warmup.failures import ManifestError
from warmup.tensorrt import RTX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from function.faces.identity import Identity
    from function.faces.landmarks import FaceMesh
    from function.faces.search import Search
    from function.runtime.engine import Engine
    from warmup.gpu import Gpu as GpuFacts
    from warmup.manifest import Model
    from warmup.plan import PlanKey, Recipe
    from warmup.tensorrt import Library


@dataclass(frozen=True, slots=True)
class Family:
    """The code for one kind of model.

    Attributes:
        stage: makes the stage from an engine.
        items: the shape of one item, float32, for each input.
        inputs: the names of the inputs in that order, where there are several.
        buckets: the batch sizes to warm, unless the manifest names others.
    """

    stage: Callable[[Engine], object]
    items: tuple[tuple[int, ...], ...]
    inputs: tuple[str, ...] = ()
    buckets: tuple[int, ...] = (1,)


def _centerface(engine: Engine) -> Search:
    from function.faces.detect import CenterFace
    from function.faces.search import Search

    return Search(CenterFace(engine))


def _face_mesh(engine: Engine) -> FaceMesh:
    from function.faces.landmarks import FaceMesh

    return FaceMesh(engine)


def _identity(engine: Engine) -> Identity:
    from function.faces.identity import Identity

    return Identity(engine)


FAMILIES: dict[tuple[str, str], Family] = {
    ("detect", "centerface"): Family(_centerface, items=((3, 640, 640),)),
    ("landmarks", "face_mesh_468"): Family(_face_mesh, items=((192, 192, 3),)),
    ("identity", "face_identity_128"): Family(_identity, items=((150, 150, 3),)),
}


_LEAST_VIEW = (3, 32, 32)
"""The smallest item of a detector; every multiple of 32 up to the family's may come."""


@dataclass(frozen=True, slots=True)
class Models:
    """What the pipeline runs.

    Attributes:
        detect, landmarks, identity: the stages.
        engines: every engine by role, to read what really executes it.
    """

    detect: Search
    landmarks: FaceMesh
    identity: Identity
    engines: dict[str, Engine]


def check(manifest: Sequence[Model]) -> None:
    """Check that a manifest has what the pipeline runs.

    Args:
        manifest: exactly one model for each role.

    Raises:
        ManifestError: a role is missing or named twice, or a family is unknown.
    """
    roles = sorted(model.role for model in manifest)
    needed = sorted(role for role, _ in FAMILIES)
    if roles != needed:
        raise ManifestError(f"the manifest has models for {roles}; needed is one each for {needed}")
    for model in manifest:
        if (model.role, model.family) not in FAMILIES:
            known = [family for role, family in FAMILIES if role == model.role]
            raise ManifestError(f"unknown family {model.family!r} for {model.role}; known: {known}")


def buckets(model: Model) -> tuple[int, ...]:
    """The batch sizes of a model, rising: its own, else those of its family."""
    return model.buckets or FAMILIES[model.role, model.family].buckets


def shapes(model: Model) -> list[tuple[tuple[int, ...], ...]]:
    """The shapes of a model's inputs, for each of its batch sizes."""
    items = FAMILIES[model.role, model.family].items
    return [tuple((size, *item) for item in items) for size in buckets(model)]


def ports(model: Model) -> Ports:
    """How engines of a model are run."""
    return Ports(FAMILIES[model.role, model.family].inputs)


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
    return plan.key_for(
        model.file.sha256,
        plan.profiles_for(
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
        model.role: FAMILIES[model.role, model.family].stage(engines[model.role])
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
    gpu: Gpu | None = None,
    passed: Callable[[Passed], None] = lambda _: None,
) -> Engine:
    """Load one model on the best of its backends.

    On a GPU it counts as loaded when it has run, and passed its golden check if it has one: some
    libraries are missed only then.

    Args:
        model: its file, which is known to be right; see `warmup.prefetch`.
        threads: threads of one inference on the CPU.
        backends: what it may run on, the most wanted first.
        allow_degraded: whether it may go from a GPU to the CPU; see `ladder.allowed`.
        store: where optimised graphs for the CPU, and plans, are kept.
        gpu: how GPUs are used.
        passed: is told of each backend that does not run it.

    Raises:
        NotOnDeviceError: none of them runs it.
    """
    gpu = gpu or Gpu()
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
    return climb(model.role, may, open_on, left_out=left_out, passed=passed)


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
