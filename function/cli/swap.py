"""`ember swap`: one target, or every photo of a folder."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from typing import TYPE_CHECKING

import click

from function.cli.cast import of_map, of_one
from function.cli.clip import becomes, swap_clip
from function.cli.files import (
    OUTPUT,
    PHOTO,
    PHOTO_OR_FOLDER,
    STANDARD,
    SUFFIXES,
    format_of,
    protect,
    unwritable,
    write,
)
from function.settings import load

if TYPE_CHECKING:
    from pathlib import Path

    from function.cli.job import Done
    from function.faces.options import SwapOptions
    from function.requests import SwapRequest
    from function.settings import Settings


@click.command()
@click.argument("photos", metavar="[SOURCE]... TARGET", nargs=-1, type=PHOTO_OR_FOLDER)
@click.option("-o", "--output", "out", metavar="OUT", type=OUTPUT, help="The file to write.")
@click.option("--faces", metavar="WHICH", help="all (default), largest, index:0,2 or like.")
@click.option("--like", metavar="PHOTO", type=PHOTO, help="Replace only who is on this photo.")
@click.option(
    "--map",
    "map_",
    metavar="FACE=PHOTO,...",
    multiple=True,
    help="A source for each face, in place of SOURCE: 0=a.jpg,2=b.jpg. FACE is a place from the"
    " left, or a photo of whom to replace.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(dict.fromkeys(SUFFIXES.values()))),
    help="Default: what OUT ends with, else the target's own.",
)
@click.option("--quality", type=click.IntRange(1, 100), help="Default: a good one.")
@click.option("--boost", type=click.IntRange(128, 1024), help="Side of a face in pixels, at most.")
@click.option("--weight", type=click.IntRange(0, 100), help="Percent of the source's identity.")
@click.option("--enhance", type=click.IntRange(0, 100), help="Percent of the enhanced face.")
@click.option("--masks", metavar="WHICH", help="Of box, occlusion, area and region, with commas.")
@click.option("--consent", metavar="TEXT", help="Who says that the person on SOURCE agrees.")
@click.option("--label", metavar="LANGUAGE", help="Show in the result, in words, what it is.")
@click.option("--json", "as_json", is_flag=True, help="Write one line of JSON for each photo.")
def swap(
    *,
    photos: tuple[Path, ...],
    out: Path | None,
    faces: str | None,
    like: Path | None,
    map_: tuple[str, ...],
    format_: str | None,
    quality: int | None,
    boost: int | None,
    weight: int | None,
    enhance: int | None,
    masks: str | None,
    consent: str | None,
    label: str | None,
    as_json: bool,
) -> None:
    """Put the face of SOURCE onto the faces of TARGET.

    Several SOURCE photos of one person make a better likeness. TARGET can be a video or an
    animation. When TARGET is a folder, so is OUT, and every photo in it is swapped. - stands for
    standard input or output. With --map, each face gets a SOURCE of its own.
    """
    if map_ and (len(photos) != 1 or faces or like):
        raise click.UsageError("--map goes with the target alone: no SOURCE, --faces or --like.")
    if not map_ and len(photos) < 2:
        raise click.UsageError("Give one or more source photos, then the target.")
    *sources, target = photos
    _check_inputs(sources, [*sources, *([like] if like else []), target])
    cast = of_map(map_) if map_ else of_one(sources, faces, like)
    people = cast.paths
    _check_output(out, target, as_json=as_json)
    if out:
        protect(out, [*people, target])
    kind = becomes(target, out, format_)
    if out and not (kind or format_ or target.is_dir() or out.is_dir()):
        format_ = format_of(out)

    from function.requests import ClipRequest, SwapRequest, Upload

    wanted = SwapRequest(
        sources=cast.sources,
        target=Upload(b"", "target"),
        faces=cast.faces,
        likes=cast.likes,
        format=format_,
        quality=quality,
        options=_options(boost, weight, enhance, masks),
        consent=consent,
        label=label,
    )
    settings = load(os.environ)
    if kind and out:
        if out.is_dir():
            out /= target.name
            protect(out, [*people, target])
        clip = ClipRequest(
            wanted.sources,
            target,
            out,
            wanted.faces,
            wanted.likes,
            kind,
            quality,
            wanted.options,
            consent,
            label,
        )
        asyncio.run(swap_clip(settings, clip, as_json=as_json))
    elif target.is_dir():
        from function.cli.batch import swap_folder

        asyncio.run(swap_folder(settings, wanted, target, out, protected=people, as_json=as_json))
    else:
        done = asyncio.run(_single(settings, wanted, target))
        if out and out.is_dir():
            out /= done.name
            protect(out, [*people, target])
        if out:
            write(out, done.result.image)
        if as_json:
            click.echo(json.dumps(done.report))
        elif out != STANDARD:
            click.echo(f"{out}: {done.summary}", err=True)


async def _single(settings: Settings, wanted: SwapRequest, target: Path) -> Done:
    from function.cli.job import swapped
    from function.cli.session import opened
    from function.problems import Problem

    async with opened(settings, swaps=True) as service:
        try:
            return await swapped(service, wanted, target)
        except Problem as problem:
            if "faces" not in problem.extra:
                raise
            # It is about faces of the target, which those who asked have not seen numbered.
            hint = f"`ember faces {target}` lists them, `--draw` numbers them on the photo."
            detail = f"{target}: {problem.detail}"
            raise Problem(problem.code, detail, hint=hint) from None


def _check_inputs(sources: list[Path], inputs: list[Path]) -> None:
    if inputs.count(STANDARD) > 1:
        raise click.UsageError("Standard input (-) can be only one of the photos.")
    if folders := [path for path in sources if path.is_dir()]:
        raise click.UsageError(f"{folders[0]} is a folder; only the target can be one.")


def _check_output(out: Path | None, target: Path, *, as_json: bool) -> None:
    if out is None:
        if not as_json:
            raise click.UsageError("Say where the result goes with -o OUT, or ask for --json only.")
        return
    if out == STANDARD and (as_json or target.is_dir()):
        what = "a report" if as_json else "more than one photo"
        raise click.UsageError(f"Standard output cannot take the photo and {what}.")
    if target.is_dir() and out.exists() and not out.is_dir():
        raise click.UsageError(f"{target} is a folder, so {out} must be one as well.")
    if target.is_dir() and not out.exists() and out.suffix.lower() in SUFFIXES:
        raise click.UsageError(f"{target} is a folder, but {out} is the name of one photo.")
    if out != STANDARD and not (out.is_dir() or target.is_dir() or out.parent.exists()):
        raise unwritable(out, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
    if target == STANDARD and out.is_dir():
        raise click.UsageError("A photo from standard input has no name; give the result one.")


def _options(
    boost: int | None, weight: int | None, enhance: int | None, masks: str | None
) -> SwapOptions:
    from function.faces.options import SwapOptions
    from function.problems import Problem

    named = {"boost": boost, "weight": weight, "enhance": enhance, "masks": masks}
    try:
        return SwapOptions.of({name: value for name, value in named.items() if value is not None})
    except Problem as problem:
        raise click.BadParameter(problem.detail, param_hint="--masks") from None
