"""`ember audit`."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from function.cli.failure import Failure
from function.cli.files import read
from function.exits import Exit
from function.extras import needing
from function.problems import Problem
from function.process.wiring.audit import audit_keys
from function.settings import load
from function.trust.audit import keyring
from function.trust.audit.find import WantedPicture
from function.trust.audit.find import find as find_lines
from function.trust.audit.keyring import KEYLESS
from function.trust.audit.places import NoPlaceError, files
from function.trust.audit.verify import AuditVerifier
from warmup.objects.errors import ObjectError
from warmup.settings import variables
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from function.service.verification import Verification
    from function.settings import Settings
    from function.settings.audit import AuditSettings
    from function.trust.audit.bucket import BucketStore
    from function.trust.audit.find import AuditMatch
    from function.trust.audit.keyring import AuditKey
    from function.trust.audit.line import AuditFile

_SILENCE_S = 30.0


class _Payload(click.ParamType[str]):
    """The payload of a watermark."""

    name = "payload"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read it."""
        text = str(value).lower()
        if len(text) != 12 or set(text) - set("0123456789abcdef"):
            self.fail(f"{value} is not 12 hexadecimal digits.", param, ctx)
        return text


_PLACES = click.argument("places", metavar="PLACE...", nargs=-1)
_KEYS = click.option(
    "--key",
    "key_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of keys, beside that of EMBER_AUDIT_KEY; may be said several times.",
)
_SINCE = click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    help="What is older need not be there, as it is not kept for longer.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Write JSON.")


@click.group()
def audit() -> None:
    """Check and search the audit, and make keys for it.

    PLACE is a folder, a bucket (gs://bucket/audit/), a file with the log of a server, or - for
    standard input; without any, it is that of EMBER_AUDIT. Give all that belongs together at once.
    """


@audit.command()
@_PLACES
@_KEYS
@_SINCE
@_JSON
def verify(
    places: tuple[str, ...], *, key_files: tuple[Path, ...], since: datetime | None, as_json: bool
) -> int:
    """Say whether an audit is whole; if not, what is wrong, and in which line.

    Exits with 0 when it is, and with 1 when it is not, or there is none. That a process was killed
    is no fault.
    """
    settings = load(os.environ).audit
    since = since.replace(tzinfo=UTC) if since else None
    verifier = AuditVerifier(_keys(settings, key_files), since)
    _each(_chosen(settings, places), since, verifier.add)
    report = verifier.report()
    if as_json:
        told: dict[str, Any] = {"chains": report.chains, "lines": report.lines}
        for name, found in (("faults", report.faults), ("notes", report.notes)):
            told[name] = [{"where": each.where, "text": each.text} for each in found]
        click.echo(json.dumps(told))
    else:
        for note in report.notes:
            click.echo(f"note   {note}")
        for fault in report.faults:
            click.echo(f"FAULT  {fault}")
        verdict = _counted(len(report.faults), "fault") if report.faults else "whole"
        counts = f"{_counted(report.chains, 'chain')}, {_counted(report.lines, 'line')}"
        click.echo(f"{counts}: {verdict if report.lines else 'no audit'}")
    return 1 if report.faults or not report.lines else 0


@audit.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_PLACES
@_KEYS
@_SINCE
@click.option(
    "--payload",
    "payloads",
    multiple=True,
    type=_Payload(),
    help="Of a watermark that was read by other means; may be said several times.",
)
@click.option("--request", "requests", multiple=True, help="The id of a request that it names.")
@click.option("--exact", is_flag=True, help="Do not look for marks in it, which takes the models.")
@_JSON
def find(
    file: Path,
    *,
    places: tuple[str, ...],
    key_files: tuple[Path, ...],
    since: datetime | None,
    payloads: tuple[str, ...],
    requests: tuple[str, ...],
    exact: bool,
    as_json: bool,
) -> int:
    """Find the requests that made FILE, or that it was sent with.

    Exactly these bytes are found by their digest; a copy that was changed, by its watermark, or by
    the request that its metadata name. Exits with 1 when there is no such request.
    """
    every, data = load(os.environ), read(file)
    settings, keys = every.audit, _keys(every.audit, key_files)
    marks, named = ((), ()) if exact else _read_marks(every, file, data)
    wanted = WantedPicture.of(data, keys, (*payloads, *marks), (*requests, *named))
    found: list[AuditMatch] = []
    since = since.replace(tzinfo=UTC) if since else None
    _each(
        _chosen(settings, places), since, lambda each: found.extend(find_lines(each, wanted, keys))
    )
    for match in found:
        if as_json:
            told = {"by": match.by, "sound": match.sound, "where": match.line.where}
            click.echo(json.dumps(told | {"line": dict(match.line.facts)}))
        else:
            click.echo(_told(match))
    if not found:
        click.echo("Nothing in the audit is about this file.", err=True)
    return 0 if found else 1


@audit.command()
def key() -> None:
    """Make a key, which is a line of the file that EMBER_AUDIT_KEY names.

    The first line writes. To change keys, put a new one above the others and start the servers
    anew; leave the old ones for as long as what they wrote is kept.
    """
    click.echo(keyring.new())


def _read_marks(
    settings: Settings, path: Path, data: bytes
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Payloads of the watermarks in a file, and the ids of requests that its metadata name."""
    from function.cli.session import opened
    from function.requests import Upload
    from function.telemetry.timings import Timings

    async def work() -> Verification:
        async with opened(variables.replace(settings, audit="off")) as service:
            return await service.verify(Upload(data, path.name), Timings())

    try:
        found = asyncio.run(work())
    except Problem as problem:
        click.echo(f"No marks can be read in it: {problem.detail}", err=True)
        return (), ()
    request = (found.metadata or {}).get("request_id")
    return tuple(mark["payload"] for mark in found.watermarks), (request,) if request else ()


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _told(match: AuditMatch) -> str:
    """A line that was found, for people."""
    facts = match.line.facts
    named = ("kind", "request", "entry", "caller", "tier", "code")
    rest = "  ".join(f"{name} {facts[name]}" for name in named if name in facts)
    doubt = {True: "", False: "  CHANGED", None: "  (its key is not there)"}[match.sound]
    return f"{facts.get('at')}  by its {match.by}:  {rest}  ({match.line.where}){doubt}"


def _keys(settings: AuditSettings, paths: Sequence[Path]) -> tuple[AuditKey, ...]:
    """All keys; those of nothing where there are none."""
    found = [] if settings.audit_key is None else [*audit_keys(settings)]
    for path in paths:
        try:
            found += keyring.read(path)
        except (OSError, ValueError) as error:
            raise Failure(f"{path}: {error}.", Exit.BAD_INPUT) from None
    return tuple(found) or (KEYLESS,)


def _chosen(settings: AuditSettings, places: tuple[str, ...]) -> tuple[str, ...]:
    if places:
        return places
    if settings.audit in {"off", "stdout"}:
        raise click.UsageError("Name a PLACE: a folder, a bucket, a log, or - for standard input.")
    return (settings.audit,)


def _each(places: Sequence[str], since: datetime | None, take: Callable[[AuditFile], None]) -> None:
    """Hand over all files of places."""

    async def work() -> None:
        opened: list[BucketStore] = []

        def bucket() -> BucketStore:
            if not opened:
                with needing("gs://", "gcs"):
                    from warmup.objects.gcs import GcsStore
                opened.append(GcsStore(_SILENCE_S))
            return opened[0]

        try:
            for place in places:
                async for file in files(place, bucket, since):
                    take(file)
        finally:
            for store in opened:
                await store.close()

    _run(work())


def _run(work: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.run(work)
    except NoPlaceError as error:
        raise Failure(str(error), Exit.BAD_INPUT) from None
    except SettingsError as error:
        raise Failure(str(error), Exit.CONFIG) from None
    except (ObjectError, OSError) as error:
        raise Failure(f"The audit cannot be read: {error}.", Exit.UNAVAILABLE) from None
