"""The subcommands of the warm-up package; `ember` shows them beside the others."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warmup.failures import DamagedError, ManifestError, StoppedError, WarmupError
from warmup.models import manifest
from warmup.settings.settings import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from warmup.models.manifest import Model
    from warmup.models.progress import FetchProgress
    from warmup.settings.settings import WarmupSettings

_FILE = click.argument("file", required=False, type=click.Path(path_type=Path))


every = click.option(
    "--every",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="Do it again and again, so that what is lost or damaged is mended, as a DaemonSet does.",
)


@click.command()
@every
@click.pass_obj
def prefetch(embedded: Path | None, *, every: float | None) -> None:
    """Bring every model of the manifest into the store, proven.

    Of variants only those that EMBER_VARIANT names are brought as well.

    On a terminal it shows bars, elsewhere it writes a line of JSON for every step. What has been
    fetched when it is interrupted is kept. Exit codes: 65 damaged, 69 unavailable, 74 the store,
    78 the settings or the manifest. With --every only the last ends it, and a signal, with 0.
    """
    settings = load(os.environ)
    models = manifest.narrowed(_models(None, settings, embedded), settings.models.variant)
    repeated(lambda report, stop: bring(models, settings, report, stop), every)


def bring(
    models: Sequence[Model],
    settings: WarmupSettings,
    report: Callable[[FetchProgress], None],
    stop: threading.Event,
) -> None:
    """Bring models into the store, and say how long it took."""
    from warmup.models.prefetch import prefetch as bring_all

    began = time.perf_counter()
    with bring_all(models, settings.stores, report=report, stop=stop) as ready:
        took = time.perf_counter() - began
        count = len(ready.held)
        click.echo(f"{count} files are here and proven ({took * 1e3:.0f} ms)", err=True)


def repeated(
    work: Callable[[Callable[[FetchProgress], None], threading.Event], None], every: float | None
) -> None:
    """Do something that is reported and can be stopped, once or again and again.

    Args:
        work: what is done, with whom it reports to and what stops it.
        every: seconds between the end and the next beginning; None for once.

    Raises:
        WarmupError: it failed, and is done once.
    """
    with reporting() as report, stopping() as stop:
        if every is None:
            work(report, stop)
            return
        while not stop.is_set():
            try:
                work(report, stop)
            except StoppedError:
                return
            except WarmupError as error:
                click.echo(f"{error}; again in {every:g} s", err=True)
            stop.wait(every)


@click.group()
def models() -> None:
    """Look after the manifest and the store.

    FILE is a models.toml; without it EMBER_MANIFEST counts, or else the embedded set.
    """


@models.command()
@_FILE
@click.pass_obj
def check(embedded: Path | None, file: Path | None) -> None:
    """Name everything that is wrong with a manifest."""
    found = _models(file, load(os.environ), embedded)
    total = sum(one.size for model in found for one in model.files)
    click.echo(f"{len(found)} models, {_bytes(total)}: nothing is wrong")


@models.command()
@_FILE
@click.pass_obj
def ls(embedded: Path | None, file: Path | None) -> None:
    """List the files of the manifest, and whatever else is in the store."""
    from warmup.models.prefetch import open_shared, open_store
    from warmup.plans.stored import open_plans

    settings = load(os.environ)
    store, shared = open_store(settings.stores), open_shared(settings.stores)
    entries = {entry.sha256: entry for entry in store.entries()}
    for model in _models(file, settings, embedded):
        for one in model.files:
            entry = entries.pop(one.sha256, None)
            state = "in place" if one.path else "in the store" if entry else "missing"
            if entry and not store.path(one.sha256).exists():
                state = "partial"
            elif entry and entry.in_use:
                state = "in use"
            elif not (entry or one.path) and shared and shared.path(one.sha256).exists():
                state = "shared"
            click.echo(f"{one.sha256[:12]}  {_bytes(one.size):>10}  {state:12}  {one.name}")
    made = {plan.sha256: plan.key.digest for plan in open_plans(settings).entries()}
    for entry in entries.values():
        plan = f"plan {made[entry.sha256][:12]}" if entry.sha256 in made else None
        state = "in use" if entry.in_use else "a plan" if plan else "not named"
        click.echo(f"{entry.sha256[:12]}  {_bytes(entry.size):>10}  {state:12}  {plan or '-'}")


@models.command()
@_FILE
@click.pass_obj
def verify(embedded: Path | None, file: Path | None) -> None:
    """Hash every file that `ember prefetch` brings, whatever was found before."""
    from warmup.models.prefetch import open_shared, open_store

    settings = load(os.environ)
    store, shared = open_store(settings.stores), open_shared(settings.stores)
    found = manifest.narrowed(_models(file, settings, embedded), settings.models.variant)
    files = [one for model in found for one in model.files]
    bad = 0
    for one in files:
        try:
            at = None if one.path or shared is None else shared.find(one, trust=False)
            held = at or store.find(one, trust=False)
        except WarmupError as error:
            bad += 1
            click.echo(f"bad      {error}", err=True)
            continue
        if held is None:
            bad += 1
            click.echo(f"missing  {one.name}: {one.source}", err=True)
        else:
            held.close()
            click.echo(f"ok       {one.name}: {held.file.path}, {one.size} bytes")
    if bad:
        raise DamagedError(f"{bad} of {len(files)} files cannot be used")


@models.command()
@_FILE
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.pass_obj
def gc(embedded: Path | None, file: Path | None, *, dry_run: bool) -> None:
    """Remove from the store what the manifest does not name and nothing uses.

    The plans of what it names stay, and the kernels that were compiled for these.
    """
    from warmup.plans.stored import open_plans

    settings = load(os.environ)
    plans = open_plans(settings)
    store = plans.store
    named = {one.sha256 for model in _models(file, settings, embedded) for one in model.files}
    kept: set[str] = set()
    for sidecar in list(plans.entries()):
        if sidecar.key.model in named and store.path(sidecar.sha256).exists():
            named.add(sidecar.sha256)
            kept.add(sidecar.key.digest)
        elif not dry_run:
            with store.writing():
                plans.forget(sidecar)
    for entry in store.entries():
        if entry.sha256 in named:
            continue
        with store.writing():
            gone = not entry.in_use if dry_run else store.remove(entry.sha256)
        word = "in use" if not gone else "would go" if dry_run else "removed"
        click.echo(f"{word:9} {entry.sha256[:12]}  {_bytes(entry.size)}")
    for path in plans.orphans(kept):
        size = path.stat().st_size
        if not dry_run:
            with store.writing():
                path.unlink()
        word = "would go" if dry_run else "removed"
        click.echo(f"{word:9} {path.name[:20]}  {_bytes(size)}")


commands = click.Group(
    "warmup", commands=[prefetch, models], help="What a replica needs to become ready."
)


def _models(
    file: Path | None, settings: WarmupSettings, embedded: Path | None
) -> tuple[Model, ...]:
    path = file or settings.models.manifest or embedded
    if path is None:
        raise ManifestError("EMBER_MANIFEST is not set")
    return manifest.read(path)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that SIGTERM sets: as process 1 of a container, nothing else would end us."""
    stop = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def reporting() -> Iterator[Callable[[FetchProgress], None]]:
    """Bars on a terminal, else lines of JSON."""
    if not sys.stderr.isatty():
        from warmup.models.lines import Lines

        yield Lines(click.echo)
        return
    from warmup.models.bars import bars

    with bars() as report:
        yield report


def _bytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
