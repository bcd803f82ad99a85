"""`ember prefetch`: the files of the models, and the plans for the GPU of this node."""

from __future__ import annotations

import os

import click

from function import assemble, plans
from function.settings import load
from warmup import manifest
from warmup.cli import prefetch as of_models
from warmup.cli import reporting, stopping


@click.command(help=of_models.help)
@click.pass_context
def prefetch(context: click.Context) -> None:
    """Bring both into the store."""
    context.invoke(of_models)
    settings = load(os.environ, alone=False)
    found = manifest.read(settings.manifest or assemble.embedded())
    with reporting() as report, stopping() as stop:
        plans.fetch(manifest.narrowed(found, settings.variant), settings, report, stop)
