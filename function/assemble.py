"""From settings to a service, the same for the server and for the command line."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from function.runtime.cpus import usable_cpus
from function.service import Service
from warmup import manifest

if TYPE_CHECKING:
    from function.settings import Settings


def service(settings: Settings) -> Service:
    """A service as the settings want it; its models are not loaded yet.

    Raises:
        ManifestError: the manifest cannot be used.
    """
    return Service(
        manifest.read(settings.manifest or embedded()),
        workers=settings.threads or usable_cpus(),
        max_pixels=settings.max_pixels,
    )


def embedded() -> Path:
    """The manifest of the models that ship with Ember."""
    return Path(str(files("function") / "models" / "models.toml"))
