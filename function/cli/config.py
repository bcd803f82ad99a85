"""`ember config`."""

from __future__ import annotations

import json
import os

import click

from function.settings import Settings
from warmup.settings import variables


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def config(*, as_json: bool) -> None:
    """Show every setting, its value and which variable gave it."""
    values = variables.read(Settings, os.environ)
    if as_json:
        facts = {v.variable.name: {"value": v.public, "from": v.origin} for v in values}
        click.echo(json.dumps(facts, indent=2, default=str))
        return
    rows = [(v.variable.name, v.shown, v.origin or "default") for v in values]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)))
