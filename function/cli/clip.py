"""`ember swap` on a video or an animation: with progress, and going on where it was interrupted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

import click

from function.cli.files import STANDARD, unwritable
from function.images import kinds
from function.images.kinds import SUFFIXES, FileKind
from function.service import report

if TYPE_CHECKING:
    from pathlib import Path

    from function.requests import ClipRequest, PartStore
    from function.settings import Settings

_REQUEST = "request"
"""The part of a clip that has its id."""


def becomes(target: Path, out: Path | None, format_: str | None) -> FileKind | None:
    """What a target becomes as a clip; None where it is a photo, or to be swapped as one.

    An animated image is swapped as a photo, its first frame, where the output is no animation.

    Raises:
        UsageError: the target is a video, and the output cannot be one.
    """
    if target == STANDARD or target.is_dir() or (kind := _kind(target)) is None:
        return None
    named = None if out is None else kind if out.is_dir() else SUFFIXES.get(out.suffix.lower())
    if kind.still:
        return named if named and named.still and format_ is None else None
    if out is None or out == STANDARD:
        raise click.UsageError("Say with -o OUT which file the video goes to.")
    if format_:
        raise click.UsageError("--format is for photos; a video is what the name of OUT ends with.")
    if named is None or named.still:
        endings = ", ".join(suffix for suffix, kind in SUFFIXES.items() if not kind.still)
        raise click.UsageError(f"A video can become {endings}, not {out.suffix or out.name}.")
    return named


async def swap_clip(settings: Settings, wanted: ClipRequest, *, as_json: bool) -> None:
    """Swap a clip, and say what has come of it.

    Raises:
        Problem: a file cannot be used.
        Failure: the result cannot be written.
    """
    from rich.console import Console
    from rich.progress import Progress

    from function.cli.session import commanded, opened
    from function.problems import Problem
    from function.request_context import current
    from function.telemetry.timings import Timings
    from function.video.parts import Folder

    parts = Folder(wanted.out.with_name(f".{wanted.out.name}.parts"))
    console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
    progress = Progress(console=console, transient=True, disable=not console.is_terminal)
    current.set(commanded(await _request_id(parts)))
    async with opened(settings, swaps=True) as service:
        with progress:
            bar = progress.add_task("Swapping", total=None)
            try:
                result = await service.clip(
                    wanted,
                    Timings(),
                    progress=lambda done, total: progress.update(bar, completed=done, total=total),
                    parts=parts,
                )
            except Problem:
                parts.clear()  # it would be the same the next time
                raise
            except OSError as error:
                raise unwritable(wanted.out, error) from None
        parts.clear()
    if as_json:
        click.echo(json.dumps(report.of_clip(result)))
    else:
        warnings = f"; warnings: {', '.join(result.warnings)}" if result.warnings else ""
        frames = f"{result.swapped} of {result.frames} frames swapped"
        console.print(f"{wanted.out}: {frames}, {result.seconds:.1f} seconds{warnings}")


async def _request_id(parts: PartStore) -> str:
    """An id for the clip, the same when it is gone on with: its frames carry it."""
    if (kept := await parts.get(_REQUEST)) is None:
        await parts.put(_REQUEST, kept := uuid4().hex.encode())
    return kept.decode()


def _kind(path: Path) -> FileKind | None:
    """What a file is, if it is a clip; one that cannot be read is left to who reads it."""
    try:
        with path.open("rb") as file:
            head = file.read(kinds.HEAD)
            animated = head.startswith((b"GIF8", b"RIFF"))
            return kinds.clip(head + file.read() if animated else head)
    except OSError:
        return None
