"""The progress of a prefetch as bars on a terminal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Display

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import TaskID

    from warmup.models.progress import FetchProgress


@contextmanager
def bars() -> Iterator[Callable[[FetchProgress], None]]:
    """A function that shows what it is called with."""
    columns = (
        TextColumn("{task.fields[name]:<16} {task.fields[state]:<8}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Display(*columns, console=Console(stderr=True)) as display:

        def report(progress: FetchProgress) -> None:
            if progress.name not in tasks:
                tasks[progress.name] = display.add_task("", name=progress.name, state="")
            display.update(
                tasks[progress.name],
                completed=progress.done,
                total=progress.size,
                state=str(progress.state),
            )

        yield report
