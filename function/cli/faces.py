"""`ember faces`."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import click

from function.cli.files import OUTPUT, PHOTO, STANDARD, format_of, protect, read, write
from function.settings import load

if TYPE_CHECKING:
    from pathlib import Path

    from function.requests import FoundFaces, Upload
    from function.settings import Settings
    from function.telemetry.timings import Timings


@click.command()
@click.argument("image", type=PHOTO)
@click.option("--draw", metavar="OUT", type=OUTPUT, help="Write the photo with its faces marked.")
@click.option("--json", "as_json", is_flag=True, help="Write one line of JSON.")
def faces(image: Path, draw: Path | None, *, as_json: bool) -> None:
    """List the faces of IMAGE from left to right. - stands for standard input or output.

    The numbers are those that `ember swap --faces index:…` takes.
    """
    if draw == STANDARD and as_json:
        raise click.UsageError("Standard output cannot take the photo and a report.")
    format_ = format_of(draw) if draw else None
    if draw:
        protect(draw, [image])

    from function.requests import Upload
    from function.service import report
    from function.telemetry.timings import Timings

    settings = load(os.environ)
    upload = Upload(read(image), f"image {image.name}")
    timings = Timings()
    found = asyncio.run(_find(settings, upload, timings))
    if draw:
        write(draw, _drawn(upload, found, format_, settings.images.max_pixels))
    if as_json:
        click.echo(json.dumps(report.of_faces(found, timings)))
    else:
        _table(report.of_faces(found, timings), on_stderr=draw == STANDARD)


async def _find(settings: Settings, upload: Upload, timings: Timings) -> FoundFaces:
    from function.cli.session import opened

    async with opened(settings) as service:
        return await service.faces(upload, timings)


def _drawn(upload: Upload, found: FoundFaces, format_: str | None, max_pixels: int) -> bytes:
    from dataclasses import replace

    from function.cli.drawing import draw
    from function.images.decode import decode
    from function.images.encode import encode
    from function.images.formats import default_format

    picture = decode(upload.data, max_pixels=max_pixels, name=upload.field)
    drawn = replace(picture, pixels=draw(picture.pixels, found.faces), alpha=None)
    return encode(drawn, format_ or default_format(picture))


def _table(found: dict[str, Any], *, on_stderr: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=on_stderr, highlight=False)
    size = f"{found['width']} × {found['height']} pixels"
    if not found["faces"]:
        console.print(f"No face was found ({size}).")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=size, caption_justify="left")
    for name in ("face", "left", "top", "right", "bottom", "score", "yaw", "pitch", "roll"):
        table.add_column(name, justify="right")
    table.add_column("found by")
    for face in found["faces"]:
        sides = (str(pixels) for pixels in face["box"].values())
        angles = (f"{degrees:.0f}°" for degrees in face["pose"].values())
        table.add_row(str(face["index"]), *sides, f"{face['score']:.2f}", *angles, face["found_by"])
    console.print(table)
