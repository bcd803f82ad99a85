"""`ember models`: the manifest and the store, and files that an operator has."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from function.cli.failure import Failure
from function.cli.graphs import batch, cutout, fp16, inspect, needing_onnx, place
from function.cli.publishing import checked, configmap, publish
from function.exits import Exit
from warmup import cli

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.weights.collection import Choice

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("import")
@click.option("--insightface", "packs", multiple=True, metavar="DIR|NAME", help="E.g. buffalo_l.")
@click.option("--facefusion", "folders", multiple=True, type=_FOLDER, help="Its .assets/models.")
@click.option("--pick", "picks", multiple=True, metavar="NAME", help="This file for its role.")
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(["landmarks", "swap", "enhance", "occlusion", "region"]),
    help="No model for this role.",
)
@click.option("-o", "--output", "out", default="models.toml", type=click.Path(path_type=Path))
@click.option("--accept-licence", is_flag=True, help="You have read them, and they allow it.")
@click.option("--batch", "batched", is_flag=True, help="Make graphs for one item take batches.")
@click.option("--store", "to_store", is_flag=True, help="Bring the files into the store as well.")
@click.option("--force", is_flag=True, help="Overwrite what is there.")
@click.pass_obj
def import_(
    embedded: Path,
    *,
    packs: tuple[str, ...],
    folders: tuple[Path, ...],
    picks: tuple[str, ...],
    without: tuple[str, ...],
    out: Path,
    accept_licence: bool,
    batched: bool,
    to_store: bool,
    force: bool,
) -> None:
    """Write a manifest for models that InsightFace or FaceFusion have brought.

    Files stay where they are. Families are recognised by the shapes of graphs, and of several files
    for one role the first is taken; --pick NAME takes another, which can be said for each role.
    What is needed and was not found comes from the embedded set. With --batch, `ember models batch`
    writes other graphs beside the manifest where these are of use.
    """
    from function.weights import collection

    if not packs and not folders:
        raise click.UsageError("Say where the models are: --insightface or --facefusion.")
    place(out, force=force)
    places = [folder for name in packs for folder in collection.pack(name)]
    known, unknown = collection.scan([*places, *folders])
    known = [each for each in known if each.role not in without]
    choice = collection.choose(known, picks, embedded)
    _show(choice, unknown)
    if not accept_licence and (closed := [each for each in choice.chosen if not each.licence.free]):
        raise Failure(
            f"The licences of {', '.join(each.path.name for each in closed)} are not permissive."
            " Read them; --accept-licence says that they allow what you do.",
            Exit.CONFIG,
        )
    if batched:
        choice = _batched(choice, out.parent, force=force)
    text = collection.entries(choice, out.parent, store=to_store)
    models = collection.write(text, out)
    click.echo(f"{out}: {len(models)} models")
    if to_store:
        from warmup.models.prefetch import prefetch
        from warmup.settings.settings import load

        with prefetch(models, load(os.environ).stores) as ready:
            click.echo(f"{len(ready.held)} files are here and proven")


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.pass_context
def check(ctx: click.Context, file: Path | None) -> None:
    """Name everything that is wrong with a manifest, and what does not fit together."""
    from warmup.settings.settings import load

    checked(file or load(os.environ).models.manifest or ctx.obj)
    ctx.invoke(cli.check, file=file)


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "out", required=True, type=click.Path(path_type=Path), help="The folder."
)
@click.pass_obj
def image(embedded: Path, *, file: Path | None, out: Path) -> None:
    """Make an OCI image of a manifest and its files, for nodes to pull and pods to mount.

    FILE is the manifest; without it, the one that would be served. What it names is fetched first,
    and proven. Container tools read the folder as oci:FOLDER; docs/deploy.md shows how it is pushed
    and used (component models-oci).
    """
    from function.weights import ociimage
    from warmup.models.prefetch import prefetch
    from warmup.settings.settings import load

    settings = load(os.environ)
    path = file or settings.models.manifest or embedded
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Failure(f"{out} is there already; name an empty folder.", Exit.CANNOT_WRITE)
    with prefetch(checked(path), settings.stores) as ready:
        made = ociimage.write(path, ready.models, out)
    click.echo(f"{out}: {made.layers} layers, {made.size / 1e6:,.1f} MB")
    click.echo(f"push it: skopeo copy oci:{out} docker://REGISTRY/NAME")
    click.echo(f"name it: REGISTRY/NAME@{made.digest}")


models = click.Group(
    "models",
    commands=[
        *cli.models.commands.values(),
        *(check, import_, inspect, batch, fp16, cutout, image, publish, configmap),
    ],
    help=cli.models.help,
)


def _batched(choice: Choice, folder: Path, *, force: bool) -> Choice:
    """The choice with graphs that take batches, for those families that are run in batches."""
    from function.faces.families import FAMILIES
    from function.runtime import onnxfile
    from function.weights.proof import UnprovenError

    with needing_onnx():
        from function.weights import batches
    chosen = []
    for each in choice.chosen:
        path = each.path
        sizes = FAMILIES[each.role, each.family].buckets
        if sizes[-1] > 1 and onnxfile.read(path).items is not None:
            out = place((folder / path.name).with_suffix(".batch.onnx"), force=force)
            try:
                batches.make(path, out)
                path = out.absolute()
            except UnprovenError as error:
                click.echo(f"not batched: {error}", err=True)
        chosen.append(replace(each, path=path))
    return replace(choice, chosen=tuple(chosen))


def _show(choice: Choice, unknown: Sequence[str]) -> None:
    """What goes into the manifest, under which licence, and what does not."""
    for each in choice.chosen:
        size = each.path.stat().st_size / 1e6
        click.echo(f"{each.role:10} {each.family:18} {size:8,.1f} MB  {each.path}")
        click.echo(f"{'':10} licence: {each.licence}")
    for model in choice.embedded:
        click.echo(f"{model.role:10} {model.family:18} {model.file.size / 1e6:8,.1f} MB  embedded")
    for each in choice.others:
        click.echo(f"also there {each.path.stem} ({each.role}, {each.family}); --pick takes it")
    for line in unknown:
        click.echo(f"not recognised: {line}", err=True)
