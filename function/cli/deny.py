"""`ember deny`."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from function.cli import lists
from function.settings import load
from function.trust.audit.record import AuditKind

_SETTING = "EMBER_DENY_LIST"
_PHOTO = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def deny() -> None:
    """Tend the list of people who are neither source nor target.

    It is where EMBER_DENY_LIST says; servers see a change within seconds. It has no photo, but
    what is in it tells its people from others all the same: keep it from whoever need not read it.
    """


@deny.command()
@click.argument("photos", metavar="PHOTO...", nargs=-1, required=True, type=_PHOTO)
@click.option("--reason", required=True, help="Why; for those who tend the list.")
@click.option("--threshold", type=click.FloatRange(0, 2, min_open=True), help="Of the distance.")
def add(photos: tuple[Path, ...], reason: str, threshold: float | None) -> None:
    """Put the person of some photos on the list, and print the id. Each shows nobody else."""
    settings = load(os.environ)
    uri = lists.place(settings.gate.deny_list, _SETTING)
    lists.enrol(settings, uri, photos, reason, AuditKind.DENY_LIST, threshold=threshold)


@deny.command("ls")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON for each person.")
def list_(*, as_json: bool) -> None:
    """List who is on it: id, since when, until when, why."""
    uri = lists.place(load(os.environ).gate.deny_list, _SETTING)
    lists.show(uri, datetime.now(UTC), as_json=as_json)


@deny.command()
@click.argument("id")
def rm(id: str) -> None:  # noqa: A002
    """Take somebody off."""
    settings = load(os.environ)
    lists.strike(settings, lists.place(settings.gate.deny_list, _SETTING), id, AuditKind.DENY_LIST)
