"""From settings to a service, the same for the server and for the command line."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from function.faces import models
from function.runtime.backends.cuda import Cuda
from function.runtime.cpus import usable_cpus
from function.runtime.gpu.options import GpuOptions
from function.service import plans
from function.service.engines import EngineConfig
from function.service.service import Service
from function.video.limits import ClipLimits
from warmup.models import golden, manifest
from warmup.models.prefetch import Ready, prefetch
from warmup.models.store import default_root
from warmup.plans.stored import open_plans, recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from function.runtime.engine import Engine
    from function.settings import Settings
    from warmup.models.manifest import Model
    from warmup.models.progress import FetchProgress
    from warmup.timeline import Timeline


def service(
    settings: Settings,
    timeline: Timeline | None = None,
    open_engine: Callable[..., Engine] = models.open_engine,
) -> Service:
    """A service as the settings want it; its models are not loaded yet.

    Args:
        settings: the effective settings.
        timeline: gets the spans of the start.
        open_engine: loads one model.

    Raises:
        ManifestError: the manifest cannot be used.
    """
    path = settings.models.manifest or embedded()
    return Service(
        manifest.read(path),
        workers=settings.threads or usable_cpus(),
        max_pixels=settings.max_pixels,
        clips=ClipLimits(
            seconds=settings.clip_max_s,
            pixels=settings.clip_max_pixels,
            frames=settings.clip_max_frames,
            size=settings.clip_max_bytes,
            direct=settings.clip_direct_pixels,
        ),
        supply=EngineConfig(
            preload=settings.preload,
            backends=settings.backends,
            allow_degraded=settings.allow_degraded,
            gpu=gpu(settings),
            wait_s=settings.wait_vram_s,
            plans=plans.PlanSource(settings) if _plans_come(settings) else None,
            fetch=StoreFetcher(settings).fetch,
            variant=settings.models.variant,
            window=settings.batch_window_ms / 1e3,
            tune=settings.threads is None,
            store=settings.stores.store or default_root(),
            open=open_engine,
        ),
        swaps=settings.warmup_requests,
        expected=golden.read(path),
        timeline=timeline,
    )


def _plans_come(settings: Settings) -> bool:
    """Whether plans that are missing at the start may come later."""
    return "tensorrt" in settings.backends and bool(settings.plans.plans or settings.build_plans)


def gpu(settings: Settings) -> GpuOptions:
    """How GPUs are used, as the settings want it."""
    return GpuOptions(
        required=settings.require_gpu,
        count=settings.gpus,
        onnx=Cuda(
            search=settings.cuda_search, limit=settings.cuda_memory, graphs=settings.cuda_graphs
        ),
        plans=open_plans(settings),
        recipe=recipe(settings.plans),
    )


class StoreFetcher:
    """Gets models by way of the store, and keeps them there as long as it lives."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ready: Ready | None = None

    def fetch(
        self, models: Sequence[Model], report: Callable[[FetchProgress], None]
    ) -> Sequence[Model]:
        """See `warmup.models.prefetch.prefetch`."""
        ready = prefetch(models, self._settings.stores, report=report)
        plans.fetch(models, self._settings, report)
        if self._ready:
            self._ready.close()
        self._ready = ready
        return ready.models


def embedded() -> Path:
    """The manifest of the models that ship with Ember."""
    return Path(str(files("function") / "models" / "models.toml"))
