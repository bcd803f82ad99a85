"""`ember page`."""

from __future__ import annotations

from pathlib import Path

import click

from function.cli.files import unwritable


@click.group()
def page() -> None:
    """Put the page where it does not sleep."""


@page.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--api", required=True, metavar="URL", help="Where the server is, like https://ember.example."
)
def export(folder: Path, api: str) -> None:
    """Write the page into FOLDER, as files for a CDN, a bucket or any server of files.

    It is there at once, and wakes a replica of the server while its user chooses photos. On the
    server, EMBER_CORS_ORIGINS has to name the origin that the page is seen at.
    """
    from function.http.page_copy import copy_page

    try:
        written = copy_page(folder, api)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--api") from None
    except OSError as error:
        raise unwritable(folder, error) from None
    click.echo(written[-1])
