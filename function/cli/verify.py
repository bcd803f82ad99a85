"""`ember verify`: what files carry that tells whether they are swaps."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING

import click

from function.cli.files import PHOTO, read
from function.service.verification import Finding
from function.settings import load

if TYPE_CHECKING:
    from pathlib import Path

    from function.service.verification import Verification
    from function.settings import Settings


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PHOTO)
@click.option("--json", "as_json", is_flag=True, help="Write one line of JSON for each file.")
def verify(*, files: tuple[Path, ...], as_json: bool) -> None:
    """Say what photos, animations and videos carry that tells whether they are swaps.

    That nothing is found proves nothing. - stands for standard input.
    """
    asyncio.run(_verify(load(os.environ), files, as_json=as_json))


async def _verify(settings: Settings, files: tuple[Path, ...], *, as_json: bool) -> None:
    from function.cli.session import opened
    from function.requests import Upload
    from function.telemetry.timings import Timings

    async with opened(settings) as service:
        for file in files:
            found = await service.verify(Upload(read(file), f"file {file}"), Timings())
            if as_json:
                click.echo(json.dumps({"file": str(file)} | found.facts()))
            else:
                click.echo("\n".join([f"{file}: {_sentence(found)}", *_lines(found)]))


def _sentence(found: Verification) -> str:
    if found.finding is Finding.UNKNOWN:
        return "no sign of a swap was found, which proves nothing"
    made = (found.metadata or {}).get("software")
    return f"this is a face swap, made by {_one_line(made)}" if made else "this is a face swap"


def _lines(found: Verification) -> list[str]:
    """What it carries, a line each."""
    lines = []
    if found.signature:
        state = "valid" if found.signature["valid"] else "NOT VALID"
        known = "" if found.signature["trusted"] else ", whom nothing here trusts"
        lines.append(f"signature  {state}, by {found.signature['by']}{known}")
    if found.metadata:
        facts = (found.metadata[name] for name in ("source_type", "software", "request_id"))
        lines.append(f"metadata   {', '.join(str(each) for each in facts if each)}")
    for mark in found.watermarks:
        where = "the picture" if mark["face"] is None else f"face {mark['face']}"
        lines.append(
            f"watermark  {mark['payload']} in {where}, key {mark['key']},"
            f" {mark['confidence']:.1f} above chance"
        )
    if found.lost:
        lines.append(f"lost       {', '.join(found.lost)}")
    lines += [f"note       {note}" for note in found.notes]
    return [f"  {_one_line(line)}" for line in lines]


def _one_line(text: str) -> str:
    """Whatever a file says of itself, it writes no line of its own, and moves no cursor."""
    return "".join(each if each.isprintable() else " " for each in text)
