"""`ember consent`."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from function.cli import lists
from function.settings import load
from function.trust.audit.record import AuditKind

_SETTING = "EMBER_CONSENT_LIST"
_PHOTO = click.Path(exists=True, dir_okay=False, path_type=Path)
_MOMENT = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])


@click.group()
def consent() -> None:
    """Tend the list of people who have agreed to be sources.

    It is where EMBER_CONSENT_LIST says. With EMBER_SOURCES=enrolled nobody else is a source;
    servers see a change within seconds, so that consent can be taken back at any time.
    """


@consent.command()
@click.argument("photos", metavar="PHOTO...", nargs=-1, required=True, type=_PHOTO)
@click.option("--subject", required=True, help="Who it is; for those who tend the list.")
@click.option("--until", required=True, type=_MOMENT, help="When it ends, in UTC: 2027-06-30.")
@click.option("--threshold", type=click.FloatRange(0, 2, min_open=True), help="Of the distance.")
def add(photos: tuple[Path, ...], subject: str, until: datetime, threshold: float | None) -> None:
    """Enrol the person of some photos, and print the id. Each shows nobody else."""
    settings, ends = load(os.environ), until.replace(tzinfo=UTC)
    if ends <= datetime.now(UTC):
        raise click.UsageError("--until is over.")
    uri = lists.place(settings.gate.consent_list, _SETTING)
    lists.enrol(settings, uri, photos, subject, AuditKind.GRANT, until=ends, threshold=threshold)


@consent.command("ls")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON for each person.")
def list_(*, as_json: bool) -> None:
    """List who has agreed: id, since when, until when, who."""
    uri = lists.place(load(os.environ).gate.consent_list, _SETTING)
    lists.show(uri, datetime.now(UTC), as_json=as_json)


@consent.command()
@click.argument("id")
def rm(id: str) -> None:  # noqa: A002
    """Take back a consent."""
    settings = load(os.environ)
    uri = lists.place(settings.gate.consent_list, _SETTING)
    lists.strike(settings, uri, id, AuditKind.REVOCATION)
