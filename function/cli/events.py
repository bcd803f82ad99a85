"""`ember events`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from function.background.events import notice as notices
from function.background.events import rules_file, wire
from function.cli.failure import Failure
from function.exits import Exit
from function.problems import Problem
from function.settings import load

if TYPE_CHECKING:
    from function.background.events.event import CloudEvent
    from function.background.events.notice import Notice
    from function.background.events.rules import Rule, Rules


@click.group()
def events() -> None:
    """Try events.toml, which says what is done with uploads."""


@events.command()
@click.argument("path", metavar="EVENT.json", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--rules",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Default: what EMBER_EVENTS names.",
)
@click.option("-H", "--header", "headers", multiple=True, help="As of curl; for binary mode.")
def test(path: Path, file: Path | None, headers: tuple[str, ...]) -> None:
    """Say which rule an event matches and why, and what would be made.

    EVENT.json is the body of a request: a CloudEvent, a batch of them, or a push of Pub/Sub; with
    -H 'ce-type: …' also the data of one. Nothing is fetched or written. The exit code is 65 when an
    event cannot be read or no rule fits.
    """
    file = file or load(os.environ).events.events
    if file is None:
        raise click.UsageError("Name the rules with --rules, or with EMBER_EVENTS.")
    rules = rules_file.read(file)
    pairs = [
        (name.strip(), value.strip()) for name, _, value in (h.partition(":") for h in headers)
    ]
    delivery = wire.parse(pairs, path.read_bytes())
    told = [_tell(event, rules) for event in delivery.events]
    if not all(told):
        raise Failure("There is nothing to do for the event.", Exit.BAD_INPUT)


def _tell(event: CloudEvent, rules: Rules) -> bool:
    """Explain one event; whether a rule fits."""
    click.echo(f"event   {event.id}  {event.type}")
    try:
        notice = notices.read(event)
    except Problem as problem:
        click.echo(f"refused: {problem.detail}")
        return False
    if isinstance(notice, str):
        click.echo(f"ignored: {notice}.")
        return False
    facts = {
        "content type": notice.media_type or "not in the event",
        "metadata": "not in the event" if notice.metadata is None else json.dumps(notice.metadata),
    }
    click.echo(f"upload  {notice.uri}")
    for name, value in facts.items():
        click.echo(f"        {name}: {value}")
    if reason := rules.own(notice):
        click.echo(f"ignored: {reason}.")
        return False
    chosen = None
    for verdict in rules.verdicts(notice):
        if chosen is None and verdict.refusal is None:
            chosen = verdict.rule
            click.echo(f"  yes   {verdict.rule.name}")
        elif verdict.refusal is None:
            click.echo(f"  late  {verdict.rule.name}: it fits too, but an earlier rule counts")
        else:
            click.echo(f"  no    {verdict.rule.name}: {verdict.refusal}")
    if chosen is None:
        click.echo("ignored: no rule fits.")
        return False
    _tell_what(notice, chosen, rules)
    return True


def _tell_what(notice: Notice, rule: Rule, rules: Rules) -> None:
    """What a rule makes of an upload."""
    click.echo(f"read    {rule.input_uri(notice)}")
    if rule.source_metadata:
        wish = (notice.metadata or {}).get(rule.source_metadata)
        click.echo(f"source  the metadata {rule.source_metadata}: {wish or 'missing'}")
        if wish:
            for uri in rules.named(wish, rule.source_within):
                click.echo(f"        {uri}")
    if rule.sidecar:
        click.echo(f"source  named in {rule.sidecar_uri(notice)}, if it is there")
    for each in rule.sources:
        for uri in rules.sources.get(each, (each,)):
            click.echo(f"source  {uri}")
    click.echo(f"output  {rule.output_uri(notice)}")
