"""From settings to a service, the same for the server and for the command line."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from function.engines import Supply
from function.runtime.cpus import usable_cpus
from function.service import Service
from warmup import golden, manifest

if TYPE_CHECKING:
    from function.settings import Settings
    from warmup.timeline import Timeline


def service(settings: Settings, timeline: Timeline | None = None) -> Service:
    """A service as the settings want it; its models are not loaded yet.

    Args:
        settings: the effective settings.
        timeline: gets the spans of the start.

    Raises:
        ManifestError: the manifest cannot be used.
    """
    path = settings.manifest or embedded()
    return Service(
        manifest.read(path),
        workers=settings.threads or usable_cpus(),
        max_pixels=settings.max_pixels,
        supply=Supply(
            preload=settings.preload,
            backends=settings.backends,
            allow_degraded=settings.allow_degraded,
            store=settings.store or default_store(),
        ),
        swaps=settings.warmup_requests,
        expected=golden.read(path),
        timeline=timeline,
    )


def default_store() -> Path | None:
    """Where the store is when nothing says where; None where nobody is at home."""
    try:
        return Path("~/.cache/ember").expanduser()
    except RuntimeError:
        return None


def embedded() -> Path:
    """The manifest of the models that ship with Ember."""
    return Path(str(files("function") / "models" / "models.toml"))
