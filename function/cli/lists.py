"""What `ember deny` and `ember consent` share: faces of photos, and lists of people."""

from __future__ import annotations

import asyncio
import json
import secrets
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

import click

from function.cli.failure import Failure
from function.cli.files import read
from function.cli.session import opened
from function.exits import Exit
from function.process.wiring.audit import build_audit
from function.process.wiring.service import embedded
from function.request_context import Entry, Sender
from function.trust.audit.record import AuditRecord
from function.trust.gate import kept_list
from function.trust.gate.identity_list import IdentityListError, IdentityModel, new_person
from warmup.models import manifest
from warmup.objects.errors import ObjectError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from datetime import datetime
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from function.service.service import Service
    from function.settings import Settings
    from function.trust.audit.record import AuditKind
    from function.trust.gate.identity_list import IdentityList, ListedPerson

T = TypeVar("T")

_CLOSE_S = 30.0
_ID_DIGITS = 12


def place(uri: str | None, setting: str) -> str:
    """Where a list is.

    Raises:
        Failure: the setting names none.
    """
    if uri is None:
        reason = f"{setting} is not set: name a file, or an object like gs://bucket/list.jsonl."
        raise Failure(reason, Exit.CONFIG)
    return uri


def enrol(
    settings: Settings,
    uri: str,
    photos: Sequence[Path],
    label: str,
    kind: AuditKind,
    *,
    until: datetime | None = None,
    threshold: float | None = None,
) -> None:
    """Put the person of some photos on a list, and print its id. The photos are not kept.

    Raises:
        Failure: a photo does not show one person, or the list cannot be changed.
    """

    async def work() -> ListedPerson:
        model = _identity(settings)
        embeddings = await _embeddings(settings, photos)
        person = new_person(label, model, embeddings, until=until, threshold=threshold)
        record = _record(kind, change="added", person=person.id, photos=len(photos))
        await _change(settings, uri, record, lambda people: people.added(person))
        return person

    click.echo(_run(work(), uri).id)


def strike(settings: Settings, uri: str, id_: str, kind: AuditKind) -> None:
    """Take somebody off a list.

    Raises:
        Failure: nobody has the id, or the list cannot be changed.
    """

    async def work() -> None:
        people = await _people(uri)
        people.removed(id_)  # raises before anything is written
        record = _record(kind, change="removed", person=id_)
        await _change(settings, uri, record, lambda people: people.removed(id_))

    try:
        _run(work(), uri)
    except KeyError:
        raise Failure(f"Nobody on the list has the id {id_}.", Exit.BAD_INPUT) from None


def show(uri: str, now: datetime, *, as_json: bool) -> None:
    """Print who is on a list: a line each, without the embeddings."""
    for each in _run(_people(uri), uri).people:
        if as_json:
            entry = json.loads(each.line())
            entry["photos"] = len(entry.pop("embeddings"))
            click.echo(json.dumps(entry, ensure_ascii=False))
            continue
        ends = f"until {each.until:%Y-%m-%d}" if each.until else "for good"
        ends = ends if each.holds(now) else f"ended {each.until:%Y-%m-%d}"
        click.echo(f"{each.id:{_ID_DIGITS}}  {each.created:%Y-%m-%d}  {ends:16}  {each.label}")


async def _change(
    settings: Settings,
    uri: str,
    record: AuditRecord,
    changed: Callable[[IdentityList], IdentityList],
) -> None:
    """Change a list, with a line of the audit before: no change is without one."""
    audit, store = build_audit(settings.audit, stream=2), kept_list.store_of(uri)
    await audit.start()
    try:
        await audit.write(record)
        await kept_list.change(uri, store, changed)
    finally:
        await store.close()
        await audit.close(_CLOSE_S)


def _record(kind: AuditKind, **details: str | int) -> AuditRecord:
    return AuditRecord(kind, Sender(Entry.COMMAND, secrets.token_hex(16)), details=details)


async def _people(uri: str) -> IdentityList:
    store = kept_list.store_of(uri)
    try:
        return (await kept_list.read(uri, store))[0]
    finally:
        await store.close()


def _identity(settings: Settings) -> IdentityModel:
    models = manifest.read(settings.models.manifest or embedded())
    return next(IdentityModel.of(model) for model in models if model.role == "identity")


async def _embeddings(settings: Settings, photos: Sequence[Path]) -> list[NDArray[np.float32]]:
    """The identity of the one person on each photo."""
    async with opened(settings) as service:
        most = settings.images.max_pixels
        found = [await asyncio.to_thread(_embedding, service, path, most) for path in photos]
        metric = service.engines.stages().identity.metric
    if any(
        metric.between(one, other) >= metric.same_person for one, other in combinations(found, 2)
    ):
        raise Failure("The photos show different people; enrol them one by one.", Exit.BAD_INPUT)
    return found


def _embedding(service: Service, path: Path, most_pixels: int) -> NDArray[np.float32]:
    from function.faces.pipeline import Pipeline
    from function.images.decode import decode
    from function.telemetry.timings import Timings

    stages = service.engines.stages()
    picture = decode(read(path), max_pixels=most_pixels, name=path.name)
    portrait, more = Pipeline(stages, stages.swapper()).portrait(picture, Timings())
    if portrait is None:
        raise Failure(f"{path.name} shows no face.", Exit.BAD_INPUT)
    if more:
        reason = f"{path.name} shows more than one face; cut out the one that is meant."
        raise Failure(reason, Exit.BAD_INPUT)
    return portrait.embedding


def _run(work: Coroutine[Any, Any, T], uri: str) -> T:
    try:
        return asyncio.run(work)
    except IdentityListError as error:
        raise Failure(f"The list {uri} cannot be used: {error}.", Exit.BAD_INPUT) from None
    except ObjectError as error:
        raise Failure(f"The list {uri} cannot be used: {error}", Exit.UNAVAILABLE) from None
