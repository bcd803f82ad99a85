"""Opens the engine of one model, on the best of its backends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from function.faces import families, models
from function.runtime.backends.fallback import SkippedBackend, allowed, open_first
from function.runtime.gpu.options import GpuOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from function.faces.models import Models
    from function.runtime.engine import Engine
    from warmup.models.manifest import Model


def open_engine(
    model: Model,
    *,
    threads: int = 1,
    backends: Sequence[str] = ("cpu",),
    allow_degraded: bool = False,
    store: Path | None = None,
    gpu: GpuOptions | None = None,
    skipped: Callable[[SkippedBackend], None] = lambda _: None,
) -> Engine:
    """Load one model on the best of its backends.

    On a GPU it counts as loaded when it has run, and passed its golden check if it has one: some
    libraries are missed only then.

    Args:
        model: its file is here and verified.
        threads: threads of one inference on the CPU.
        backends: what it may run on, the most wanted first.
        allow_degraded: whether it may go from a GPU to the CPU.
        store: where optimised graphs for the CPU, and plans, are kept.
        gpu: how GPUs are used.
        skipped: called with each backend that does not run it.

    Raises:
        NotOnDeviceError: none of them runs it.
    """
    gpu = gpu or GpuOptions()
    how = families.ports(model)

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

        return open_kept(gpu, partial(families.plan_keys, model, gpu.recipe), device, how)

    def open_on(backend: str) -> Engine:
        if backend == "cpu":
            return on_cpu()
        engine = gpu.spread({"tensorrt": on_tensorrt, "cuda": on_cuda}[backend])
        _try_out(model, engine)
        return engine

    if stays := families.on_cpu(model):
        backends = (families.CPU,)
    required = gpu.required and not stays
    may = allowed(backends, allow_degraded=allow_degraded, require_gpu=required)
    left_out = "cpu" in backends and "cpu" not in may
    return open_first(model.role, may, open_on, left_out=left_out, passed=skipped)


def _try_out(model: Model, engine: Engine) -> None:
    """Run a model once, on the smallest batch, and on its golden input if it has one."""
    from function.runtime import sanity

    size = engine.items or families.buckets(model)[0]
    items = families.family_of(model).items
    sanity.attempt(model.role, engine, [(size, *item) for item in items])
    if model.golden:
        sanity.known(model.file.name, engine, model.golden)


def load(manifest: Sequence[Model], threads: int = 1, store: Path | None = None) -> Models:
    """The models of a manifest, loaded for the CPU in parallel."""
    families.check(manifest)
    with ThreadPoolExecutor(len(manifest), "load") as pool:
        engines = pool.map(partial(open_engine, threads=threads, store=store), manifest)
        return models.build(
            manifest, dict(zip((model.role for model in manifest), engines, strict=True))
        )
