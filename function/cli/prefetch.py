"""`ember prefetch`: the files of the models, and the plans for the GPU that this process has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from function.process.wiring.service import embedded
from function.service import plans
from function.settings import load
from warmup.cli import bring, repeated
from warmup.cli import every as every_option
from warmup.cli import prefetch as of_models
from warmup.models import manifest

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from warmup.models.progress import FetchProgress


@click.command(help=of_models.help)
@every_option
def prefetch(*, every: float | None) -> None:
    """Bring both into the store."""
    settings = load(os.environ, alone=False)
    found = manifest.read(settings.models.manifest or embedded())
    models = manifest.narrowed(found, settings.models.variant)

    def both(report: Callable[[FetchProgress], None], stop: threading.Event) -> None:
        bring(models, settings, report, stop)
        plans.fetch(models, settings, settings.engines, report, stop)

    repeated(both, every)
