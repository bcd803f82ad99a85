"""`ember swap` over a folder: a few photos at a time, past those that cannot be swapped."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import Progress

from function.cli.failure import Failure
from function.cli.files import READABLE, make_folder, photos_in, protect, write
from function.cli.job import Done, swapped
from function.cli.session import opened
from function.exits import Exit
from function.problems import Problem
from function.runtime.cpus import usable_cpus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from function.requests import SwapRequest
    from function.service.service import Service
    from function.settings import Settings


async def swap_folder(
    settings: Settings,
    wanted: SwapRequest,
    folder: Path,
    out: Path | None,
    *,
    protected: Sequence[Path],
    as_json: bool,
) -> None:
    """Swap every photo of a folder into another one.

    Args:
        settings: for the service.
        wanted: what to do with each photo.
        folder: the targets.
        out: where the results go; made when it does not exist; None to write no photos.
        protected: files besides the targets that must not be written over.
        as_json: write one line of JSON for each photo to standard output.

    Raises:
        Problem: a source or the reference cannot be used.
        Failure: there are no photos, some could not be swapped, or a result cannot be written.
    """
    targets = photos_in(folder)
    if not targets:
        raise Failure(f"{folder} holds no photos; {READABLE}.", Exit.BAD_INPUT)
    if out:
        make_folder(out)
    console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
    progress = Progress(console=console, transient=True, disable=not console.is_terminal)
    taken: set[str] = set()
    failed = 0
    async with opened(settings, swaps=True) as service:
        with progress:
            bar = progress.add_task("Swapping", total=len(targets))
            ahead = settings.engines.threads or usable_cpus()
            async for target, outcome in _each(service, wanted, targets, ahead):
                if isinstance(outcome, Problem):
                    failed += 1
                    console.print(f"{target.name}: {outcome.detail}")
                elif out:
                    path = out / _free(outcome, taken)
                    protect(path, [*protected, target])
                    write(path, outcome.result.image)
                if as_json:
                    click.echo(json.dumps({"target": target.name, **_facts(outcome)}))
                progress.advance(bar)
    if failed:
        raise Failure(f"{failed} of {len(targets)} photos could not be swapped.", Exit.BAD_INPUT)
    console.print(f"{len(targets)} photos swapped.")


async def _each(
    service: Service, wanted: SwapRequest, targets: Sequence[Path], ahead: int
) -> AsyncIterator[tuple[Path, Done | Problem]]:
    """Each target with its outcome, in order, while the next ones are in work already.

    Raises:
        Problem: one that is not the target's, so that every target would meet it.
    """

    async def attempt(target: Path) -> Done | Problem:
        try:
            return await swapped(service, wanted, target)
        except Problem as problem:
            return problem

    window: deque[tuple[Path, asyncio.Task[Done | Problem]]] = deque()
    for number, target in enumerate(targets, 1):
        window.append((target, asyncio.create_task(attempt(target))))
        while len(window) > (ahead if number < len(targets) else 0):
            oldest, task = window.popleft()
            outcome = await task
            if isinstance(outcome, Problem) and not _blames_target(outcome):
                raise outcome
            yield oldest, outcome


def _blames_target(problem: Problem) -> bool:
    return str(problem.extra.get("image", "target")).startswith("target")


def _free(done: Done, taken: set[str]) -> str:
    """A name for the result that no other result of this run has."""
    name = done.name
    if name in taken:  # a.bmp and a.tiff both become a.png
        name = done.target.name + name.removeprefix(done.target.stem)
    taken.add(name)
    return name


def _facts(outcome: Done | Problem) -> dict[str, Any]:
    if isinstance(outcome, Problem):
        return {"problem": {"code": outcome.code, "detail": outcome.detail}}
    return outcome.report
