"""`ember coldstart`: starts replicas and shows where the time goes until they are ready."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import click

from function.cli.failure import Failure
from function.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

_POLL_S = 0.01
_BAR = 32
_PARTS = " ▏▎▍▌▋▊▉█"


class Row(NamedTuple):
    """One span of the waterfall: medians, in seconds since the process started."""

    name: str
    start: float
    end: float


@click.command()
@click.option("-n", "times", default=5, show_default=True, help="How many replicas to start.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def coldstart(*, times: int, as_json: bool) -> None:
    """Start fresh replicas, one after the other, and show the medians of their timelines.

    They take the settings of this shell, except for the port.
    """
    found = [_start() for _ in range(times)]
    rows, ready = medians(found), [_ready(each) for each in found]
    if as_json:
        spans = [{"name": r.name, "start_s": r.start, "end_s": r.end} for r in rows]
        click.echo(json.dumps({"ready_s": ready, "spans": spans}, indent=2))
        return
    from rich.console import Console

    console = Console()
    console.print(waterfall(rows, statistics.median(ready)))
    spread = f" ({min(ready):.2f} to {max(ready):.2f} s)" if times > 1 else ""
    count = "1 start" if times == 1 else f"median of {times} starts"
    click.echo(f"Ready after {statistics.median(ready):.2f} s, {count}{spread}.")


def medians(timelines: Sequence[dict[str, Any]]) -> list[Row]:
    """The spans that every timeline has, by start, the longer first."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for timeline in timelines:
        for name, start, end in {s["name"]: (*s.values(),) for s in timeline["spans"]}.values():
            spans.setdefault(name, []).append((start, end))
    rows = [
        Row(name, *(statistics.median(times) for times in zip(*found, strict=True)))
        for name, found in spans.items()
        if len(found) == len(timelines)
    ]
    return sorted(rows, key=lambda row: (row.start, -row.end))


def waterfall(rows: Sequence[Row], ready: float) -> Table:
    """The rows with a bar for each; phases are bold."""
    from rich.table import Table
    from rich.text import Text

    from warmup.phase import Phase

    first = min(0.0, *(row.start for row in rows))
    scale = _BAR / max(ready - first, 1e-9)
    table = Table(box=None, pad_edge=False)
    table.add_column("span", no_wrap=True)
    table.add_column("from, ms", justify="right")
    table.add_column("ms", justify="right")
    table.add_column(no_wrap=True, min_width=_BAR)
    for row in rows:
        bar = _bar((row.start - first) * scale, (row.end - first) * scale)
        phase = row.name in set(Phase)
        table.add_row(
            Text(row.name if phase else f"  {row.name}", "bold" if phase else ""),
            f"{row.start * 1e3:.0f}",
            f"{(row.end - row.start) * 1e3:.0f}",
            Text(bar, "cyan" if phase else "green"),
        )
    return table


def _bar(start: float, end: float) -> str:
    """Blocks from `start` to `end`, in columns; at least a sliver."""
    column = round(start)
    eighths = max(1, round((end - start) * 8))
    return " " * column + "█" * (eighths // 8) + _PARTS[eighths % 8].strip()


def _start() -> dict[str, Any]:
    """The timeline of one replica, as `GET /warmup` has it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = {"EMBER_HOST": "127.0.0.1", "EMBER_PORT": str(port), "EMBER_DRAIN_GRACE_S": "0"}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "function"], env={**os.environ, **own}, stderr=output
            )
        try:
            while process.poll() is None:
                if _ask(port, "/readyz") is not None:
                    return _ask(port, "/warmup") or {}
                time.sleep(_POLL_S)
        finally:
            process.terminate()
            process.wait()
        last = log.read_text(errors="replace").strip().rpartition("\n")[2]
    raise Failure(f"the replica ended with exit code {process.returncode}: {last}", Exit.INTERNAL)


def _ask(port: int, path: str) -> dict[str, Any] | None:
    """The JSON at a path, when its status is 200."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return dict(json.load(answer))
    except (URLError, OSError):
        return None


def _ready(timeline: dict[str, Any]) -> float:
    return float(next(s["at_s"] for s in timeline["steps"] if s["phase"] == "ready"))
