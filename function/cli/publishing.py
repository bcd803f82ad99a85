"""`ember models publish` and `configmap`: models on their way to a cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from function.cli.files import STANDARD
from function.cli.graphs import place as free

if TYPE_CHECKING:
    from warmup.models.file import File
    from warmup.models.manifest import Model
    from warmup.models.publish import PublishState

_MANIFEST = click.option(
    "--manifest",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A models.toml; without it, the one that would be served.",
)
_ANNOTATION = 256 * 1024
"""Bytes that Kubernetes lets annotations have, and with them what `kubectl apply` notes."""


@click.command()
@click.argument("place", metavar="PLACE")
@_MANIFEST
@click.option(
    "-o",
    "--output",
    "out",
    default="published.toml",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The new manifest; - for standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite the new manifest.")
@click.pass_obj
def publish(embedded: Path, *, place: str, file: Path | None, out: Path, force: bool) -> None:
    """Put the files of a manifest into PLACE, and write a manifest that names them there.

    PLACE is gs://bucket/folder, file:///folder or a path. Files get the name sha256/DIGEST there;
    what is there already, and right, is not written again, so that the same command goes on after
    anything. Each is proven before, and read again after it was written.
    """
    from function.weights.collection import write
    from warmup.models import publish as publishing
    from warmup.models.prefetch import prefetch
    from warmup.settings.settings import load

    settings = load(os.environ)
    path = file or settings.models.manifest or embedded
    if out != STANDARD:
        free(out, path, force=force)
    models = checked(path)
    if file is None:
        whose = "EMBER_MANIFEST" if settings.models.manifest else "the embedded models"
        roles = ", ".join(model.role for model in models)
        click.echo(f"Without --manifest it is {path}, {whose}: {roles}", err=True)
    where = publishing.place_of(place, settings.stores.fetch)
    folder = Path.cwd() if out == STANDARD else out.absolute().parent
    text = publishing.published(path, where, folder)
    with prefetch(models, settings.stores) as ready:
        publishing.publish(ready.models, where, _report)
    if out == STANDARD:
        click.echo(text, nl=False)
        return
    write(text, out)
    click.echo(f"{out}: {len(models)} models of {path}", err=True)


@click.command()
@_MANIFEST
@click.option("--name", help="Of the ConfigMap; ember-models without it.")
@click.pass_obj
def configmap(embedded: Path, *, file: Path | None, name: str | None) -> None:
    """Print the ConfigMap with a manifest, which overlays have as models.yaml.

    It is what the component knative/components/models mounts: the manifest, and the files of its
    golden checks. kubectl apply -f - takes it as well. The manifest has to name its files where
    pods can reach them, as one does that `ember models publish` has written.
    """
    from warmup.models import configmap as maps
    from warmup.settings.settings import load

    path = file or load(os.environ).models.manifest or embedded
    checked(path)
    text = maps.configmap(path, maps.NAME if name is None else name)
    if len(text) > _ANNOTATION:
        click.echo(
            f"It has {len(text)} bytes. Above {_ANNOTATION} `make deploy` refuses it, as kubectl"
            " apply notes all of it in an annotation, which may not have more: take smaller files"
            " for its golden checks, or apply it by kubectl apply --server-side.",
            err=True,
        )
    sys.stdout.write(text)


def checked(path: Path) -> tuple[Model, ...]:
    """The models of a manifest, of which nothing is wrong.

    Raises:
        ManifestError: something is, or they do not fit together, or a golden check lacks a file.
    """
    from function.faces.families import check
    from warmup.models import golden, manifest

    models = manifest.read(path)
    check(models)
    golden.read(path)
    return models


def _report(file: File, state: PublishState) -> None:
    click.echo(f"{state:9}  {file.sha256[:12]}  {file.size / 1e6:8,.1f} MB  {file.name}", err=True)
