"""`ember demo`: the sample photos, swapped before one's eyes."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from function.cli.files import OUTPUT, STANDARD, format_of, write
from function.settings import load

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from function.cli.job import Done
    from function.requests import SwapRequest
    from function.settings import Settings

_HEIGHT, _GAP = 256, 8
"""Pixels of a photo in the terminal, and between two."""
_NEXT = """\
With photos of your own:   ember swap me.jpg portrait.jpg -o out.jpg
In a browser, over HTTP:   ember serve"""


@click.command()
@click.option(
    "-o",
    "--output",
    "out",
    metavar="OUT",
    type=OUTPUT,
    default=Path("ember-demo.jpg"),
    show_default=True,
    help="The file to write.",
)
def demo(out: Path) -> None:
    """Swap the sample photos, and show source, before and after where the terminal can.

    Terminals that can are those with kitty's graphics or sixels: kitty, Ghostty, WezTerm, foot,
    Konsole, iTerm2, Windows Terminal and others. Elsewhere it says where the photos are.
    """
    if out == STANDARD:
        raise click.UsageError("Name a file; standard output is for what is shown.")
    from function.requests import SwapRequest, Upload

    format_ = format_of(out)
    source, target = _sample("hopper"), _sample("collins")
    face = Upload(source.read_bytes(), f"source {source.name}")
    wanted = SwapRequest((face,), Upload(b"", "target"), format=format_)
    done = asyncio.run(_swap(load(os.environ), wanted, target))
    write(out, done.result.image)
    if shown := _pictures([source.read_bytes(), target.read_bytes(), done.result.image]):
        sys.stdout.buffer.write(shown + b"\n")
        click.echo("The source, the target before, and after.")
    else:
        click.echo(f"source: {source}\nbefore: {target}")
    click.echo(f"after:  {out}: {done.summary}\n\n{_NEXT}")


async def _swap(settings: Settings, wanted: SwapRequest, target: Path) -> Done:
    from function.cli.job import swapped
    from function.cli.session import opened

    async with opened(settings, swaps=True) as service:
        return await swapped(service, wanted, target)


def _pictures(photos: list[bytes]) -> bytes | None:
    """What makes the terminal show photos side by side; None where it cannot."""
    from function.cli.terminal import escapes, graphics

    if (way := graphics()) is None:
        return None
    import numpy as np

    return escapes(np.hstack([_small(photo) for photo in photos]), way)


def _small(photo: bytes) -> NDArray[np.uint8]:
    """A photo for the terminal with a gap beside it, uint8 [_HEIGHT, W, 3], RGB."""
    import io

    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(photo)) as opened:
        width = round(opened.width * _HEIGHT / opened.height)
        small = np.asarray(opened.convert("RGB").resize((width, _HEIGHT)))
    return np.pad(small, ((0, 0), (0, _GAP), (0, 0)))


def _sample(name: str) -> Path:
    return Path(str(files("function") / "samples" / f"{name}.jpg"))
