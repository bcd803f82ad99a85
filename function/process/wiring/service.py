"""A service from settings, the same for the server and for the command line."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from function.process.wiring.trust import build_trust
from function.runtime.backends.cuda import Cuda
from function.runtime.cpus import usable_cpus
from function.runtime.gpu.options import GpuOptions
from function.service import opening, plans
from function.service.engine_config import EngineConfig
from function.service.plans import LatePlans
from function.service.service import Service
from function.trust.gate.gate import gated
from function.video.limits import ClipLimits
from warmup.models import golden, manifest
from warmup.models.prefetch import Ready, prefetch
from warmup.models.store import default_root
from warmup.plans.stored import open_plans, recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from function.runtime.engine import Engine
    from function.settings import Settings
    from function.settings.engines import EngineSettings
    from function.settings.requests import ImageSettings
    from warmup.models.manifest import Model
    from warmup.models.progress import FetchProgress
    from warmup.settings.settings import WarmupSettings
    from warmup.timeline import Timeline


def build_service(
    settings: Settings,
    timeline: Timeline | None = None,
    open_engine: Callable[..., Engine] = opening.open_engine,
) -> Service:
    """A service as the settings want it; its models are not loaded yet.

    Args:
        settings: all of them.
        timeline: gets the spans of the start.
        open_engine: loads one model.

    Raises:
        ManifestError: the manifest cannot be used.
        SettingsError: what the settings name for trust cannot be used.
    """
    path = settings.models.manifest or embedded()
    own = manifest.read(path)
    shipped = own if path == embedded() else manifest.read(embedded())
    models = gated(own, shipped, on=settings.gate.gate)
    return Service(
        models,
        workers=settings.engines.threads or usable_cpus(),
        max_pixels=settings.images.max_pixels,
        clips=_clip_limits(settings.images),
        config=_engine_config(settings.engines, settings, open_engine),
        swaps=settings.replica.warmup_requests,
        expected=golden.read(path),
        timeline=timeline,
        trust=build_trust(settings, models),
    )


def embedded() -> Path:
    """The manifest of the models that ship with Ember."""
    return Path(str(files("function") / "models" / "models.toml"))


def gpu_options(engines: EngineSettings, warmup: WarmupSettings) -> GpuOptions:
    """How GPUs are used."""
    return GpuOptions(
        required=engines.require_gpu,
        count=engines.gpus,
        onnx=Cuda(
            search=engines.cuda_search, limit=engines.cuda_memory, graphs=engines.cuda_graphs
        ),
        plans=open_plans(warmup),
        recipe=recipe(warmup.plans),
    )


def _clip_limits(images: ImageSettings) -> ClipLimits:
    return ClipLimits(
        seconds=images.clip_max_s,
        pixels=images.clip_max_pixels,
        frames=images.clip_max_frames,
        size=images.clip_max_bytes,
        direct=images.clip_direct_pixels,
    )


def _engine_config(
    engines: EngineSettings, warmup: WarmupSettings, open_engine: Callable[..., Engine]
) -> EngineConfig:
    plans_may_come = warmup.plans.plans is not None or engines.build_plans
    wants_plans = "tensorrt" in engines.backends and plans_may_come
    return EngineConfig(
        preload=engines.preload,
        backends=engines.backends,
        allow_degraded=engines.allow_degraded,
        gpu=gpu_options(engines, warmup),
        wait_s=engines.wait_vram_s,
        plans=LatePlans(warmup, engines) if wants_plans else None,
        fetch=StoreFetcher(warmup, engines).fetch,
        variant=warmup.models.variant,
        window=engines.batch_window_ms / 1e3,
        tune=engines.threads is None,
        store=warmup.stores.store or default_root(),
        open=open_engine,
    )


class StoreFetcher:
    """Gets models and their plans by way of the store, and keeps them there while it lives."""

    def __init__(self, warmup: WarmupSettings, engines: EngineSettings) -> None:
        self._warmup, self._engines = warmup, engines
        self._ready: Ready | None = None

    def fetch(
        self, models: Sequence[Model], report: Callable[[FetchProgress], None]
    ) -> Sequence[Model]:
        """The models with the paths of their files; `report` gets what is fetched.

        Raises:
            WarmupError: a model cannot be had.
        """
        ready = prefetch(models, self._warmup.stores, report=report)
        plans.fetch(models, self._warmup, self._engines, report)
        if self._ready:
            self._ready.close()
        self._ready = ready
        return ready.models
