"""The subcommands of the warm-up package; `ember` shows them beside the others."""

from __future__ import annotations

from pathlib import Path

import click

from warmup.manifest import ManifestError, read


class Unusable(click.ClickException):
    """The manifest, or a file that it names, cannot be used."""

    exit_code = 65


@click.command()
@click.argument("manifest", type=click.Path(path_type=Path))
def verify(manifest: Path) -> None:
    """Check that every file of MANIFEST (a models.toml) has its size and its SHA-256."""
    try:
        models = read(manifest)
    except ManifestError as error:
        raise Unusable(str(error)) from None
    bad = 0
    for model in models:
        try:
            model.verify()
        except ManifestError as error:
            bad += 1
            click.echo(f"bad  {model.role}: {error}", err=True)
        else:
            click.echo(f"ok   {model.role}: {model.path.name}, {model.size} bytes, {model.licence}")
    if bad:
        raise Unusable(f"{bad} of {len(models)} models cannot be used.")


commands = click.Group("warmup", commands=[verify], help="What a replica needs to become ready.")
